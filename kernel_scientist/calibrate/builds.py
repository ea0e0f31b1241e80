"""Compiles the suite's kernels in several processes at once, into Triton's cache: the timing process finds them there.

One after the other they take a minute and a half. A compiler that ends its process or never returns costs no time here:
what is not in the cache is compiled again by the process that times, which reports why it fails.

`python -m kernel_scientist.calibrate.builds FILE` compiles the entries that the file names.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from kernel_scientist.calibrate import suite
from kernel_scientist.calibrate.suite import CalibrationKernel
from kernel_scientist.records import environment

MOST_PROCESSES = 16
"""Each has a context of its own on the GPU, which takes half a gigabyte there."""
KILLED_S = 5
"""Seconds that a killed process has to end."""
DEVICE = "cuda"
"""torch's name of the GPU, on ROCm as well."""


def ahead(entries: Sequence[CalibrationKernel], folder: Path, seconds: float) -> None:
    """Compile entries for at most so long; `folder` is for the kernels' files."""
    sources = list(dict.fromkeys(entry.source for entry in entries))
    processes = min(MOST_PROCESSES, len(os.sched_getaffinity(0)), len(sources))
    started: list[subprocess.Popen[bytes]] = []
    end = time.monotonic() + seconds
    try:
        for number in range(processes):
            share = set(sources[number::processes])
            file = folder / f"share_{number}.json"
            file.write_text(json.dumps([[e.source, e.inputs] for e in entries if e.source in share]))
            started.append(_process(file))
        for process in started:
            process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        pass
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # its assembler, too
            with contextlib.suppress(subprocess.TimeoutExpired):  # one that hangs in the driver does not end
                process.wait(KILLED_S)


def _process(file: Path) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(filter(None, (str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", "kernel_scientist.calibrate.builds", str(file)],
        env={**os.environ, "PYTHONPATH": path, "KERNEL_SCIENTIST_ROOT": str(environment.root())},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def main() -> None:
    """Compile every entry of a file by calling it once; the output is not looked at."""
    file = Path(sys.argv[1])
    kernels: dict[str, Callable[[Any], Any]] = {}
    errors: list[str] = []
    for source, inputs in json.loads(file.read_text()):
        try:
            kernel = kernels[source] = kernels.get(source) or suite.imported(source, file.parent)
            kernel(tuple(_empty(item) for item in inputs["items"]))
        except Exception as error:  # a compiler may raise anything; the process that times reports it
            errors.append(f"{type(error).__name__}: {error}"[:400])
    if errors:
        print(f"{len(errors)} kernels were not compiled ahead; the first: {errors[0]}", file=sys.stderr)


def _empty(item: dict[str, Any]) -> torch.Tensor:
    return torch.empty(item["shape"], dtype=getattr(torch, item["dtype"]), device=DEVICE)


if __name__ == "__main__":
    main()
