"""Everything that needs a GPU, in under ten minutes: `make gpu-check`, `python -m benchmarks.gpu_check`.

The GPU's tests, its cheats and honest kernels as far as the time reaches (all of them, in some ten minutes:
`pytest -m gpu tests/cheats`), the calibration of the performance model, and every problem's Triton seeds through the
whole evaluator; each part has a bound and runs in processes of its own. What was not reached is counted.
Leaves one folder, by default `benchmarks/results/gpu-<device>-<date>/`: a summary, which is written after each part,
what each part said, and the times of the calibration, each as soon as it is measured. Exit code: 0 all is well, 1 a
part failed, 2 there is no GPU.
"""

import argparse
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts import RESULTS, Done, answer, bounded, machine, word, write
from kernel_scientist import problems
from kernel_scientist.calibrate import measure
from kernel_scientist.records import environment

PROGRAM = (sys.executable, "-m", "kernel_scientist")
TESTS = (sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-rA", "--tb=short")
NOTHING_COLLECTED = 5
"""pytest's exit code where no test bears the mark."""
MARK = re.compile(r"\bmark\.gpu\b")
CHEATS = "tests/cheats/"
BOUNDS_S = {"tests": 90.0, "cheats": 170.0, "calibration": 210.0, "suite": 110.0}
"""Together 580 s. The test that calibrates is left out of the first: the third does the same."""
LAST_S = 40.0
"""What the last kernel of the corpus may take, and the end of its tests."""
FIT_S = 60.0
"""What a fit may take after the times are measured."""
SHORT = ("--set", "harness.stages=1", "--set", "harness.blocks=2", "--set", "harness.pairs=0")
"""Settings for little timing: all seeds are to be reached."""


@dataclass(frozen=True)
class Check:
    """Where the parts write, and by what factor their bounds differ from `BOUNDS_S`."""

    folder: Path
    share: float
    platform: str

    def part(self, name: str) -> dict[str, Any]:
        """Run a part of this name and return what is known of it."""
        marked = gpu_tests()
        match name:
            case "tests":
                others = [file for file in marked if not file.startswith(CHEATS)]
                return self._pytest(name, *others, "-k", "not whole_suite")
            case "cheats":
                return self._pytest(name, *(file for file in marked if file.startswith(CHEATS)))
            case "calibration":
                if self.platform == "cuda":
                    return {"ok": True, "words": "NVIDIA's GPUs have no model to calibrate"}
                return self._calibration()
            case _:
                return self._suite()

    def bound_s(self, name: str) -> float:
        """Return a part's bound."""
        return round(BOUNDS_S[name] * self.share, 1)

    def _ran(self, name: str, command: list[str], **extra: str) -> tuple[str, dict[str, Any]]:
        """Run a part, keep its output in a file; return the output and what is known of its process."""
        done = bounded(command, self.bound_s(name), **extra)
        (self.folder / f"{name}.txt").write_text(done.output)
        known = {"ok": done.status == 0, "status": done.status, "seconds": done.seconds, "bound_s": self.bound_s(name)}
        return done.output, known

    def _pytest(self, name: str, *arguments: str) -> dict[str, Any]:
        seconds = str(max(self.bound_s(name) - LAST_S, 1.0))
        output, known = self._ran(name, [*TESTS, *arguments], CORPUS_SECONDS=seconds)
        counts = re.findall(r"(\d+) (passed|failed|skipped|error)", output.rpartition("\n=")[2] or output[-300:])
        return {
            **known,
            "ok": known["status"] in (0, NOTHING_COLLECTED),
            "tests": {kind: int(count) for count, kind in counts},
            "failed": re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.M),
            "not_reached": sum(map(int, re.findall(r"^SKIPPED \[(\d+)\] .*not reached", output, re.M))),
        }

    def _calibration(self) -> dict[str, Any]:
        seconds = max(self.bound_s("calibration") - FIT_S, 20.0)
        options = ["--times", str((self.folder / "times.jsonl").resolve()), "--seconds", f"{seconds:g}", "--json"]
        output, known = self._ran("calibration", [*PROGRAM, "calibrate", *options])
        found = answer(output)
        fit: dict[str, Any] = found.get("fit") or {}
        return {
            **known,
            "figures": {key: fit.get(key) for key in ("rho", "error", "held_out", "families", "constants", "kept")},
            "timed": len(found.get("measured", ())),
            "dropped": found.get("dropped", {}),
            "words": "" if found else output[-2000:],
        }

    def _suite(self) -> dict[str, Any]:
        """Evaluate every problem's Triton seeds, as far as the bound allows."""
        bound_s, start, rows = self.bound_s("suite"), time.monotonic(), list[dict[str, Any]]()
        with (self.folder / "suite.txt").open("w") as words:
            for name in problems.names():
                for seed in problems.find(name).seeds("triton"):
                    left = start + bound_s - time.monotonic()
                    if left < 1:
                        rows.append({"problem": name, "kernel": seed.stem, "verdict": "not reached"})
                        continue
                    options = ["--problem", name, *SHORT, "--target", self.platform, "--json"]
                    done = bounded([*PROGRAM, "evaluate", str(seed), *options], left)
                    words.write(f"{name}, {seed.stem}:\n{done.output}\n")
                    words.flush()
                    rows.append({"problem": name, "kernel": seed.stem, **_judged(done)})
        seconds = round(time.monotonic() - start, 1)
        ok = bool(rows) and all(row["verdict"] == "ok" for row in rows)
        return {"ok": ok, "seconds": seconds, "bound_s": bound_s, "kernels": rows}


def gpu_tests() -> list[str]:
    """Return the files of tests that need a GPU: others need packages that a GPU's machine may lack."""
    root = environment.root()
    files = sorted((root / "tests").rglob("test_*.py"))
    return [str(file.relative_to(root)) for file in files if MARK.search(file.read_text())]


def main() -> None:
    """Run all parts or those that are named; write the summary after each, and print it."""
    parser = argparse.ArgumentParser(prog="gpu-check", description="Everything that needs a GPU.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these: {', '.join(BOUNDS_S)}")
    parser.add_argument("--results", type=Path, metavar="DIR", help="folder for the results")
    parser.add_argument("--seconds", type=float, metavar="N", help="time in all; each part gets its share of it")
    options = parser.parse_args()
    if unknown := [name for name in options.parts if name not in BOUNDS_S]:
        parser.error(f"unknown part {unknown[0]!r}; known: {', '.join(BOUNDS_S)}")
    found = measure.present()
    if found is None:
        print("gpu-check: torch finds no GPU here, so there is nothing to check; run it where there is one")
        sys.exit(2)
    date, names = time.strftime("%Y-%m-%d"), options.parts or list(BOUNDS_S)
    folder = options.results or RESULTS / f"gpu-{word(found.name)}-{date}"
    folder.mkdir(parents=True, exist_ok=True)
    usual = sum(BOUNDS_S[name] for name in names)
    check = Check(folder, (options.seconds or usual) / usual, found.platform)
    summary = {"date": date, "device": found.model_dump(), "machine": machine(), "failed": [], "parts": {}}
    for name in names:
        summary["parts"][name] = check.part(name)
        summary["failed"] = [part for part, said in summary["parts"].items() if not said["ok"]]
        write(folder / "summary.json", summary)
    sys.exit(1 if summary["failed"] else 0)


def _judged(done: Done) -> dict[str, Any]:
    found = answer(done.output)
    if not found:
        return {"verdict": "no answer", "seconds": done.seconds, "words": done.output[-1000:]}
    keys = ("verdict", "reason", "geomean_us", "cases", "speedup", "sandbox")
    return {**{key: found.get(key) for key in keys}, "seconds": done.seconds}


if __name__ == "__main__":
    main()
