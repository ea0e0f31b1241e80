"""An entry of the competition by its own file: predicted and published time of each timed shape.

    python -m benchmarks.contest.entry FILE [ENTRY] [CASES]

FILE: a submission, HIP or Triton; it is not part of this repository. ENTRY: its name in
`data/published/competition-fp8-gemm.csv`. CASES: parts of the names of cases. Samples of each case's workgroups are
executed and counted; values are not compared, so a case may be predicted whose kernel is not right.
Exit code: 0 every factor is within `MOST_FACTOR` and their geometric mean within `MOST_MEAN`, 1 they are not.
"""

import statistics
import sys
from pathlib import Path

from kernel_scientist.records import environment

environment.prepare()

from benchmarks import contest  # noqa: E402
from kernel_scientist import problems  # noqa: E402
from kernel_scientist.calibrate import published  # noqa: E402
from kernel_scientist.calibrate.tables import rows_of, shape_of  # noqa: E402
from kernel_scientist.evaluation.hot_lines import Executed  # noqa: E402
from kernel_scientist.gpu.capture.preview import Previewer  # noqa: E402
from kernel_scientist.gpu.model import constants  # noqa: E402
from kernel_scientist.hardware import gpus  # noqa: E402
from kernel_scientist.records.params import Harness  # noqa: E402

MOST_FACTOR, MOST_MEAN = 1.5, 1.25
"""Goals for predicted / published times, or the inverse: each, and their geometric mean."""


def main(file: Path, name: str = "", wanted: str = "") -> int:
    """Print a row per case and the geometric mean; return the exit code."""
    gpu, problem, harness = gpus.named(published.MACHINES[0]), problems.find(contest.PROBLEM), Harness()
    known, source = constants.of(gpu.name), file.read_text()
    adds = contest.HOST_US - known.launch_us if name == contest.FIFTH else 0.0
    times = {shape_of(row).case.name: float(row["us"]) for row in rows_of(contest.TIMES) if row["entry"] == name}
    cases = [case for case in problem.profile("full").benchmarks if any(w in case.name for w in wanted.split(","))]
    report = Previewer(problem, gpu, harness).preview(source, cases).report
    if not report.ok:
        print(report.log)
        return 1
    each, factors = Executed(problem, gpu, harness, source), list[float]()
    print("predicted us, published us, ratio")
    for case in cases:
        counted, predictions = each.added([case], report, ())
        if not predictions:
            print(f"  {counted.missed[-1]}", flush=True)
            continue
        us, theirs = predictions[0].time_us + adds, times.get(case.name)
        print(f"  {case.name:<22}{us:8.1f}{f'{theirs:8.1f}{us / theirs:8.2f}' if theirs else ''}", flush=True)
        factors += [us / theirs] if theirs else []
    if not factors:
        return 0
    mean = statistics.geometric_mean(factors)
    print(f"  geometric mean of {len(factors)} ratios: {mean:.2f}, from {min(factors):.2f} to {max(factors):.2f}")
    return 0 if all(within(f, MOST_FACTOR) for f in factors) and within(mean, MOST_MEAN) else 1


def within(factor: float, most: float) -> bool:
    """Return whether a factor or its inverse is at most `most`."""
    return max(factor, 1 / factor) <= most


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:4]))
