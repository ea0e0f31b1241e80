"""Everything that needs a GPU, in under ten minutes: `make gpu-check`, `python -m benchmarks.gpu_check`.

The GPU's tests, its cheats and honest kernels as far as the time reaches (all of them, in some ten minutes:
`pytest -m gpu tests/cheats`), the calibration of the performance model, and every problem's Triton seeds through the
whole judge; each part has a bound and runs in processes of its own. What was not reached is counted.
Leaves one folder, `benchmarks/results/gpu-<device>-<date>/`: a summary, and what each part said. Exit code: 0 all is
well, 1 a part failed, 2 there is no GPU.
"""

import re
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.parts import RESULTS, Done, answer, bounded, machine, word, write
from kernel_scientist import problems
from kernel_scientist.calibrate import measure

PROGRAM = (sys.executable, "-m", "kernel_scientist")
TESTS = (sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-rA", "--tb=short")
NOTHING_COLLECTED = 5
"""pytest's exit code where no test bears the mark."""
BOUNDS_S = {"tests": 90.0, "cheats": 170.0, "calibration": 210.0, "suite": 110.0}
"""Together 580 s. The test that calibrates is left out of the first: the third does the same."""
LAST_S = 40.0
"""What the last kernel of the corpus may take, and the end of its tests."""


def main() -> None:
    """Run all parts; write and print the summary."""
    found = measure.present()
    if found is None:
        print("gpu-check: torch finds no GPU here, so there is nothing to check; run it where there is one")
        sys.exit(2)
    date = time.strftime("%Y-%m-%d")
    folder = RESULTS / f"gpu-{word(found.name)}-{date}"
    folder.mkdir(parents=True, exist_ok=True)
    parts = {
        "tests": _pytest(folder, "tests", "tests", "--ignore=tests/cheats", "-k", "not whole_suite"),
        "cheats": _pytest(folder, "cheats", "tests/cheats"),
        "calibration": _calibration(folder),
        "suite": _suite(folder, found.platform),
    }
    failed = [name for name, part in parts.items() if not part["ok"]]
    summary = {"date": date, "device": found.model_dump(), "machine": machine(), "failed": failed, "parts": parts}
    write(folder / "summary.json", summary)
    sys.exit(1 if failed else 0)


def _ran(folder: Path, name: str, command: list[str], **extra: str) -> tuple[str, dict[str, Any]]:
    """Run a part, keep its output in a file; return the output and what is known of its process."""
    done = bounded(command, BOUNDS_S[name], **extra)
    (folder / f"{name}.txt").write_text(done.output)
    known = {"ok": done.status == 0, "status": done.status, "seconds": done.seconds, "bound_s": BOUNDS_S[name]}
    return done.output, known


def _pytest(folder: Path, name: str, *arguments: str) -> dict[str, Any]:
    output, known = _ran(folder, name, [*TESTS, *arguments], CORPUS_SECONDS=str(BOUNDS_S[name] - LAST_S))
    counts = re.findall(r"(\d+) (passed|failed|skipped|error)", output.rpartition("\n=")[2] or output[-300:])
    return {
        **known,
        "ok": known["status"] in (0, NOTHING_COLLECTED),
        "tests": {kind: int(count) for count, kind in counts},
        "failed": re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.M),
        "not_reached": sum(map(int, re.findall(r"^SKIPPED \[(\d+)\] .*not reached", output, re.M))),
    }


def _calibration(folder: Path) -> dict[str, Any]:
    output, known = _ran(folder, "calibration", [*PROGRAM, "calibrate", "--json"])
    found = answer(output)
    fit: dict[str, Any] = found.get("fit") or {}
    return {
        **known,
        "figures": {key: fit.get(key) for key in ("rho", "error", "families", "constants", "kept")},
        "timed": len(found.get("measured", ())),
        "dropped": found.get("dropped", {}),
        "words": "" if found else output[-2000:],
    }


def _suite(folder: Path, target: str) -> dict[str, Any]:
    """Evaluate every problem's Triton seeds, as far as the bound allows."""
    end, rows = time.monotonic() + BOUNDS_S["suite"], list[dict[str, Any]]()
    for name in problems.names():
        for seed in problems.find(name).seeds("triton"):
            left = end - time.monotonic()
            if left < 1:
                rows.append({"problem": name, "kernel": seed.stem, "verdict": "not reached"})
                continue
            command = [*PROGRAM, "evaluate", str(seed), "--problem", name, "--target", target, "--json"]
            done = bounded(command, left)
            (folder / f"{name}-{seed.stem}.txt").write_text(done.output)
            rows.append({"problem": name, "kernel": seed.stem, **_judged(done)})
    return {
        "ok": bool(rows) and all(row["verdict"] == "ok" for row in rows),
        "seconds": round(time.monotonic() - end + BOUNDS_S["suite"], 1),
        "bound_s": BOUNDS_S["suite"],
        "kernels": rows,
    }


def _judged(done: Done) -> dict[str, Any]:
    found = answer(done.output)
    if not found:
        return {"verdict": "no answer", "seconds": done.seconds, "words": done.output[-1000:]}
    keys = ("verdict", "reason", "geomean_us", "cases", "speedup", "sandbox")
    return {**{key: found.get(key) for key in keys}, "seconds": done.seconds}


if __name__ == "__main__":
    main()
