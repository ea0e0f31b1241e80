"""A submission's runs as the verdict, times and comparisons of an evaluation."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from kernel_scientist.campaign.kernelbot.api import Run, Submission
from kernel_scientist.records.evaluation import PairedTime, Speedup, Timing, geomean
from kernel_scientist.records.kernel import Case, Verdict

_FIELD = re.compile(r"\s*([A-Za-z_]\w*):\s*([^;]+)")


@dataclass(frozen=True)
class Benchmark:
    """The leaderboard's time of one case in microseconds: mean over its calls, and that mean's standard error."""

    mean_us: float
    error_us: float


def verdict(submission: Submission) -> tuple[Verdict, str]:
    """Return what a submission's runs say about the kernel, and a sentence unless it is `ok`."""
    words = submission.job.error if submission.job and submission.job.error else ""
    if submission.state == "hacked":
        return Verdict.REJECTED, f"the leaderboard's guard calls it a hack{_after(words)}"
    if submission.state == "timed_out":
        return Verdict.TIMEOUT, f"the leaderboard's time limit was over{_after(words)}"
    failed = next((run for run in submission.runs if not run.passed), None)
    if failed is not None:
        kind = "with the secret seed" if failed.secret else "on the leaderboard"
        detail = next((v for k, v in failed.result.items() if k.endswith((".error", ".message")) and v), words)
        known = failed.secret or any(k.startswith(("test.", "benchmark.")) for k in failed.result)
        if known or not words:
            return Verdict.INCORRECT, f"its {failed.mode} run failed {kind}{_after(detail)}"
        return Verdict.CRASHED, f"its {failed.mode} run ended early {kind}{_after(words)}"
    if submission.state == "failed" or not submission.runs:
        return Verdict.INFRASTRUCTURE, f"submission {submission.id} ended without a run{_after(words)}"
    return Verdict.OK, ""


def benchmarks(submission: Submission, cases: Sequence[Case]) -> dict[str, Benchmark]:
    """Return the public benchmark's times by case name; empty unless every one printed is of a known case.

    A board with `ranking_by: last` prints one case only.
    """
    run = next((run for run in submission.runs if run.mode == "benchmark" and not run.secret), None)
    if run is None:
        return {}
    found: dict[str, Benchmark] = {}
    count = int(run.result.get("benchmark-count", 0))
    for number in range(count):
        sizes = dict(_FIELD.findall(run.result.get(f"benchmark.{number}.spec", "")))
        open_ = (c for c in cases if c.name not in found)
        case = next((c for c in open_ if all(sizes.get(k, "").strip() == str(v) for k, v in c.sizes.items())), None)
        if case is not None and (time := _benchmark(run, number)) is not None:
            found[case.name] = time
    return found if len(found) == count else {}


def ranked(submission: Submission) -> dict[str, float]:
    """Return the scores of ranked runs in microseconds, `public` and `secret`: they are no times of this evaluation."""
    runs = (run for run in submission.runs if run.mode == "leaderboard" and run.score is not None)
    return {"secret" if run.secret else "public": run.score * 1e6 for run in runs if run.score is not None}


def timings(times: dict[str, Benchmark], floors_us: dict[str, float]) -> tuple[Timing, ...]:
    """Return the times as records, each with its 95 % interval."""
    return tuple(
        Timing(
            case=case,
            time_us=one.mean_us,
            interval_us=(max(1e-3, one.mean_us - 1.96 * one.error_us), one.mean_us + 1.96 * one.error_us),
            floor_us=floors_us.get(case),
        )
        for case, one in times.items()
    )


def speedup(
    against: str, ours: dict[str, Benchmark], theirs: dict[str, Benchmark], confidence: float, margin: float
) -> Speedup:
    """Return the comparison of two submissions: both have times of the same cases.

    The interval covers the variation between calls, and by `margin` that between submissions.
    """
    pairs = {case: PairedTime(time_us=one.mean_us, against_us=theirs[case].mean_us) for case, one in ours.items()}
    ratio = geomean([pair.ratio for pair in pairs.values()])
    variance = sum(_relative(ours[case]) ** 2 + _relative(theirs[case]) ** 2 for case in pairs)
    spread = NormalDist().inv_cdf(0.5 + confidence / 2) * math.sqrt(variance) / len(pairs) + math.log1p(margin)
    return Speedup(
        against=against,
        ratio=ratio,
        interval=(ratio * math.exp(-spread), ratio * math.exp(spread)),
        margin=margin,
        has_margin=True,
        cases=pairs,
    )


def _benchmark(run: Run, number: int) -> Benchmark | None:
    try:
        mean_ns, error_ns = (float(run.result[f"benchmark.{number}.{key}"]) for key in ("mean", "err"))
    except (KeyError, ValueError):
        return None
    good = math.isfinite(mean_ns) and mean_ns > 0 and math.isfinite(error_ns) and error_ns >= 0
    return Benchmark(mean_ns / 1e3, error_ns / 1e3) if good else None


def _relative(one: Benchmark) -> float:
    return one.error_us / one.mean_us


def _after(words: str) -> str:
    return f": {' '.join(words.split())[:400]}" if words else ""
