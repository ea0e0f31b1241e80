"""First light on a GPU: `make first-light`, `python -m benchmarks.first_light [STEP ...]`, in under ten minutes.

Goes in steps from "the driver starts in the sandbox" to a calibration. Each is a process with a time limit, so one that
fails or hangs hides nothing after it. `results` says what they leave, also if they fail half-way, in
`benchmarks/results/first-light-<device>-<date>/` or the folder of `--results`. `--standin` takes the tests' stand-in
for a GPU's runtime: it shows that the steps work, and its figures mean nothing. Of the packages only torch, triton,
numpy, scipy, pydantic, PyYAML, filelock and kernelguard are needed (README.md: on a machine without network). Exit
code: 0 every step passed, 1 one failed, 2 there is no GPU.
"""

import argparse
import contextlib
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Any

from benchmarks.first_light import surroundings
from benchmarks.first_light.results import Results
from benchmarks.parts import RESULTS, Done, bounded, machine, word
from kernel_scientist.hardware import gpu

STEPS = {
    "driver": ("driver.driver_starts", 15.0),
    "torch": ("starting.torch_sees_it", 40.0),  # on a cold disk
    "triton": ("starting.triton_runs", 20.0),
    "sandbox": ("sandboxed.worker_runs", 39.0),
    "limits": ("sandboxed.limits_hold", 18.0),
    "events": ("clocks.events_agree", 15.0),
    "sweep": ("clocks.sweep_evicts", 12.0),
    "seed": ("verdicts.seed_passes", 26.0),
    "times": ("times.times_agree", 40.0),
    "overheads": ("times.overheads", 20.0),
    "differences": ("verdicts.known_differences", 50.0),
    "cheats": ("verdicts.cheats_fail", 75.0),
    "problems": ("verdicts.problems_are_evaluated", 60.0),
    "counters": ("verdicts.counters_are_read", 35.0),
    "extension": ("sandboxed.extension_runs", 70.0),
    "lock": ("clocks.lock_excludes", 14.0),  # two processes start
    "calibration": ("starting.calibration", 40.0),
}
"""By step: the function, and its limit in seconds, about twice what it took on an H100. The last one may take what the
others left."""
WITHOUT_TORCH = ("driver",)
"""Steps whose process imports no torch."""
TIMED = ("events", "sweep", "seed", "times", "overheads", "differences", "cheats", "problems", "counters")
"""Steps that hold the device's lock; a calibration takes it by itself."""
BOUND_S, LOCK_S, PROBE_S = 590.0, 20.0, 60.0
FIRST_GPU = "/dev/nvidia0"
PROBE = "import torch; print(torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')"
NONE = (
    "first-light: torch finds no GPU here, so there is no light to see; run it where there is one, or with --standin "
    "to see the steps"
)
FACT = "FACT "
"""Beginning of a line in a step's output that holds facts as JSON."""


def main() -> None:
    """Run the steps, or as a step's process that step."""
    parser = argparse.ArgumentParser(prog="first-light", description="First light on a GPU, in steps.")
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"only these: {', '.join(STEPS)}")
    parser.add_argument("--standin", action="store_true", help="without a GPU, on the stand-in for its runtime")
    parser.add_argument("--without", default="", help="layer of the sandbox that workers leave out")
    parser.add_argument("--results", type=Path, help="folder for the results, as two files")
    parser.add_argument("--seconds", type=float, default=BOUND_S, help="bound of all steps (%(default)g)")
    parser.add_argument("--process", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := [name for name in options.steps if name not in STEPS]:
        parser.error(f"unknown step {unknown[0]!r}; known: {', '.join(STEPS)}")
    if options.process:
        sys.exit(_become(options.steps[0], options.standin, options.without))
    end = time.monotonic() + options.seconds
    name = "standin" if options.standin else _device()
    if not name:
        print(NONE)
        sys.exit(2)
    folder = options.results or RESULTS / f"first-light-{word(name)}-{time.strftime('%Y-%m-%d')}"
    with Results(folder, archived=options.results is not None) as results, _awake():
        sys.exit(run(results, name, options.steps or list(STEPS), options.without, end))


def _device() -> str:
    """Return the GPU's name; empty where there is none. One that torch does not find is a step's failure."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return ""
    if found := surroundings.name():  # it costs no import of torch
        return found
    said = bounded([sys.executable, "-c", PROBE], PROBE_S).output.strip().splitlines()
    return (said[-1] if said else "") or ("unseen" if gpu.driver_present() else "")


@contextlib.contextmanager
def _awake() -> Generator[None]:
    """Keep NVIDIA's driver from stopping the GPU between two steps, which would cost each seconds."""
    try:
        descriptor = os.open(FIRST_GPU, os.O_RDWR)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        os.close(descriptor)


def run(results: Results, device: str, steps: list[str], without: str, end: float) -> int:
    """Run steps until the clock shows `end`, add their results, print a line for each; return the exit code."""
    failed = False
    here = {"device": device, **surroundings.facts(), **machine()}
    for name in steps:
        number, (_, limit_s) = list(STEPS).index(name) + 1, STEPS[name]
        left_s = end - time.monotonic()
        last = name == list(STEPS)[-1] or device == "standin"  # limits are those of a GPU's machine
        limit_s = left_s if last else min(limit_s, left_s)
        arguments = [name, "--process", f"--without={without}", *(["--standin"] if device == "standin" else [])]
        done = bounded([sys.executable, "-m", "benchmarks.first_light", *arguments], max(limit_s, 0.0))
        found = result(done, limit_s)
        if name == "sandbox":  # later steps are to show something, so they do without what refuses
            without = found["found"].get("without", "all")
            here["layers"] = found["found"].get("layers", [])
        known = {"step": name, "date": time.strftime("%Y-%m-%d %H:%M"), "without": without}
        results.add(f"{number:02}-{name}", {**known, **found, "machine": here}, done.output)
        print(f"{number:02} {name:12}{found['outcome']:8}{done.seconds:7.1f} s  {found['reason']}".rstrip(), flush=True)
        failed = failed or found["outcome"] == "failed"
    print(f"results in {results.folder}")
    return int(failed)


def result(done: Done, limit_s: float) -> dict[str, Any]:
    """Return what a step's process has said: its outcome (passed, failed, not here), the reason, all facts."""
    facts: dict[str, Any] = {}
    for line in done.output.splitlines():
        if line.startswith(FACT):
            with contextlib.suppress(ValueError):  # a killed process may leave half a line
                facts |= json.loads(line.removeprefix(FACT))
    outcome, reason, note = facts.pop("outcome", "failed"), facts.pop("reason", ""), facts.pop("note", "")
    if done.status is None:
        outcome, reason = "failed", f"not finished after {max(limit_s, 0):.0f} s"
    elif not reason and outcome == "failed":
        reason = f"its process ended with exit status {done.status}"
    return {
        "outcome": outcome,
        "reason": reason or note,
        "seconds": done.seconds,
        "limit_s": round(limit_s, 1),
        "found": facts,
    }


def _become(step: str, standin: bool, without: str) -> int:
    """Run a step in this process: print its facts as they come, and its outcome; return the exit code."""
    if standin:
        os.environ["TRITON_INTERPRET"] = "1"
    outcome, reason = "passed", ""
    try:
        from benchmarks.first_light import outcome as said
        from kernel_scientist.sandbox import device_lock

        here: Any = said.Asked(standin, without)
        if step not in WITHOUT_TORCH:
            from benchmarks.first_light.here import Here

            here = Here(standin, without)
    except ImportError as error:
        _say({"outcome": "failed", "reason": f"{error}; install this package first"})
        return 1
    module, _, function = STEPS[step][0].partition(".")
    try:
        work = getattr(importlib.import_module(f"benchmarks.first_light.{module}"), function)
        with device_lock.device(here.lock(), LOCK_S) if step in TIMED else contextlib.nullcontext():
            for facts in work(here):
                _say(facts)
    except said.NotHereError as error:
        outcome, reason = "not here", str(error)
    except BaseException as error:
        traceback.print_exc()
        outcome, reason = "failed", f"{type(error).__name__}: {error}"[:2000]
    _say({"outcome": outcome, "reason": reason})
    return int(outcome == "failed")


def _say(facts: dict[str, Any]) -> None:
    print(f"\n{FACT}{json.dumps(facts, default=str)}", flush=True)


if __name__ == "__main__":
    main()
