"""Results as people read them: `evaluate`, `validate`, `optimize` and `report` as lines and tables.

A ratio is the quotient of two times of one run, and stands beside its interval (`records.factors`).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_scientist.campaign import champions, ending, results
from kernel_scientist.population import standings
from kernel_scientist.population.entry import score
from kernel_scientist.problems import published
from kernel_scientist.records import environment
from kernel_scientist.records.campaign_result import CampaignResult, FinalistResult
from kernel_scientist.records.capability import Capability
from kernel_scientist.records.evaluation import Trial, geomean
from kernel_scientist.records.factors import busy, factor, number
from kernel_scientist.records.kernel import COMPILED, REFERENCE, Verdict
from kernel_scientist.records.results import (
    BarResult,
    BesideResult,
    CaseResult,
    EvaluationResult,
    SpeedupResult,
    ValidationResult,
)
from kernel_scientist.records.suite_result import BaselineSpeedup, SuiteResult, SuiteRow, SuiteShares
from kernel_scientist.records.text import number_of
from kernel_scientist.report import conditions, hypotheses
from kernel_scientist.report.output import Table, parts, text

if TYPE_CHECKING:
    from kernel_scientist.tracking.access import RecordedCampaign

DETAILS = ("labels", "evidence", "sandbox", "clocks", "environment", "seconds")
"""Printed only on request, in this order; evidence also when the kernel failed."""
FINAL = {
    "rank": "rank",
    "kernel": "kernel",
    "geomean_us": "final, us",
    "reference_us": "reference, us",
    "speedup": "speedup",
    "recorded_geomean_us": "own run, us",
    "recorded_reference_us": "reference, us",
    "recorded_speedup": "speedup",
}
BESIDE = {
    "ratio": "champion is faster by",
    "held_out_us": "held-out, us",
    "held_out_ratio": "champion is faster by",
}
CONFIRMED = {"role": "", "kernel": "kernel", "us": "public, us", **BESIDE}
BARS = {"kernel": "bar", "us": "public, us", "champion_us": "champion, us", **BESIDE}
PREDICTED_BARS = {"kernel": "bar", "predicted_us": "predicted, us"}
MOST_HYPOTHESES = 20
"""Hypotheses in the terminal; the page has more."""
ROLES = ("reference", "seed", "standing champion", "bar")
REST = {"base": "base", "experiment": "experiment", "verdict": "verdict"}
MEASURED = {"kernel": "kernel", "speedup": "speedup", **REST, "us": "geomean, us", "reference_us": "reference, us"}
PREDICTED = {"kernel": "kernel", "speedup": "share of the roofline, predicted", **REST, "us": "predicted, us"}
"""Columns of a table of kernels: what decides is second, so that a phone shows it."""


def speed_text(trial: Trial) -> str:
    """Return the speedup over the reference in a kernel's own run, or the predicted share of the roofline's speed."""
    if trial.evaluation.by_model:
        return f"{100 * score(trial):.3g} %" if score(trial) else ""
    return str(trial.evaluation.speedup_over(REFERENCE) or "")


def _with_intervals(row: BesideResult) -> dict[str, Any]:
    """Return a row whose ratios are texts."""
    held_out = factor(row.held_out_ratio, row.held_out_interval)
    return {**dict(row), "ratio": factor(row.ratio, row.interval, row.interval_why), "held_out_ratio": held_out}


def kernel_row(trial: Trial, best: Trial | None = None) -> dict[str, str]:
    """Return a kernel's row in a table with the columns `MEASURED` or `PREDICTED`."""
    kernel, evaluation, times = trial.kernel, trial.evaluation, standings.recorded(trial)
    style = "" if evaluation.verdict is Verdict.OK else "failed"
    us = number(evaluation.predicted_us if evaluation.by_model else times.geomean_us)
    unverified = " unverified" if us and evaluation.verdict is not Verdict.OK else ""
    return {
        "kernel": kernel.name,
        "base": kernel.base or ("seed" if kernel.is_seed else "champion"),
        "experiment": kernel.experiment.title if kernel.experiment else kernel.report,
        "verdict": evaluation.verdict.value,
        "us": us + unverified,
        "reference_us": number(times.reference_us),
        "speedup": speed_text(trial),
        "style": "champion" if best and best.kernel.name == kernel.name else style,
    }


def final_table(ranked: Sequence[FinalistResult]) -> Table:
    """Return the table of a final, whose first finalist is the champion."""
    rows: list[dict[str, Any]] = [
        {
            **dict(row),
            **{f"recorded_{key}": value for key, value in row.recorded},
            "speedup": factor(row.speedup, row.interval),
            "recorded_speedup": factor(row.recorded.speedup, row.recorded.interval),
        }
        for row in ranked
    ]
    rows[0]["style"] = "champion"
    return Table(FINAL, rows, "final: all finalists timed in one run")


def confirmed_table(validation: ValidationResult, champion: str, title: str = "") -> Table:
    """Return the sources of a validation (reference, seeds and bars from slow to fast, champion) with their times."""
    roles = {REFERENCE: "reference", champions.STANDING: "standing champion"}
    roles |= {bar.kernel: "bar" for bar in validation.bars}
    rows: list[dict[str, Any]] = [
        {
            "role": roles.get(speedup.against, "seed"),
            "kernel": "PyTorch" if speedup.against == REFERENCE else speedup.against,
            **_with_intervals(results.beside(speedup, validation.held_out_over(speedup.against))),
        }
        for speedup in validation.speedups
    ]
    rows.sort(key=lambda row: (ROLES.index(row["role"]), -(row["us"] or 0.0)))
    if seeds := [row for row in rows if row["role"] == "seed"]:
        seeds[-1]["role"] = "best seed"
    first = validation.speedups[0]
    hidden = validation.held_out_over(first.against)  # None if they were not timed on held-out cases
    us, held_out_us = (results.mean([case.time_us for case in one.cases]) if one else None for one in (first, hidden))
    won = {"role": "champion", "kernel": champion, "us": us, "held_out_us": held_out_us, "style": "champion"}
    return Table(CONFIRMED, [*rows, won], title)


def bar_table(bars: Sequence[BarResult]) -> Table | None:
    """Return the bars that were timed or predicted; None if there are none."""
    if measured := [one for one in bars if one.us is not None]:
        return Table(BARS, list(map(_with_intervals, measured)), "bars, timed in one run with the champion")
    predicted = [dict(one) for one in bars if one.predicted_us is not None]
    return Table(PREDICTED_BARS, predicted, "bars, predicted") if predicted else None


def bar_failures(bars: Sequence[BarResult]) -> Iterator[str]:
    """Yield a sentence about each bar that has no time."""
    for one in bars:
        if one.us is None and one.predicted_us is None:
            correct = one.verdict == Verdict.OK.value
            why = one.reason or "the champion itself was not timed" if correct else f"{one.verdict}: {one.reason}"
            yield f"bar {one.kernel} has no time: {why}"


def _bars(bars: Sequence[BarResult]) -> Iterator[str | Table]:
    if (found := bar_table(bars)) is not None:
        yield found
    yield from bar_failures(bars)


def published_table(recorded: "RecordedCampaign") -> Table | None:
    """Return the champion's time of each case beside the best published one; None if none is published for them."""
    champion, known = recorded.champion(), published.best(recorded.published)
    if champion is None:
        return None
    ours = champion.evaluation.times_us
    rows = [{"case": case, "us": us, "published_us": known[case].us} for case, us in ours.items() if case in known]
    sources = dict.fromkeys(known[case].origin for case in ours if case in known)
    kind = "predicted" if champion.evaluation.by_model else "measured"
    columns = {"case": "case", "us": f"{champion.kernel.name}, {kind}, us", "published_us": "best published kernel, us"}
    return Table(columns, rows, f"published: {'; '.join(sources)}") if rows else None


def report(recorded: "RecordedCampaign", validation: ValidationResult | None, page: Path) -> Iterator[str | Table]:
    """Yield confirmation, final and files of a campaign."""
    best, root = recorded.champion(), environment.root()
    yield from filter(None, [ending.of(recorded.run).words])
    if busy := conditions.told(recorded.population, recorded.final, best, validation):
        yield busy
    if validation and best:
        title = f"{recorded.problem}: measured in fresh processes, geometric means over the cases"
        yield confirmed_table(validation, best.kernel.name, title)
        yield validation.told
        yield from bar_failures(validation.bars)
    else:
        yield from _bars(recorded.bars)
    if ranked := standings.final_rows(recorded.population, recorded.final):
        yield final_table(ranked)
    yield from filter(None, [published_table(recorded), hypotheses.table(recorded, MOST_HYPOTHESES)])
    yield f"\nchampion   {standings.reason(recorded.population, recorded.final)}"
    for name, path in (
        ("source", champions.of_campaign(recorded.problem, recorded.run.campaign) / champions.SOURCE),
        ("report", page),
    ):
        if path.exists():
            yield f"{name:10} {path.relative_to(root) if path.is_relative_to(root) else path}"
    yield "UIs        make ui   (Prefect at http://127.0.0.1:4200, MLflow at http://127.0.0.1:5000)"


def evaluation(result: EvaluationResult, verbose: bool) -> Iterator[str | Table]:
    """Yield verdict, time per case, speedup with interval and floor; with `verbose` everything."""
    said = result.verdict.because(result.reason) if result.reason else result.verdict.value
    yield f"{said} ({result.problem} on {result.target})"
    yield from filter(None, [result.coverage, busy(result.environment)])
    if result.cases:
        yield case_table(result.cases, result.speedup)
    if result.speedup:
        yield speedup_line(result.speedup)
    yield from _details(result, verbose)


def validation(result: ValidationResult, verbose: bool) -> Iterator[str | Table]:
    """Yield whether a kernel is confirmed, and its times on public and held-out cases."""
    if result.recorded:
        same = "kernel, baseline, evaluator, settings and machine are the same, so nothing was timed again"
        yield f"recorded by campaign {result.recorded}; {same}"
    yield result.told
    yield from filter(None, [busy(result.environment)])
    public, hidden = (result.cases, result.speedups), (result.held_out.cases, result.held_out.speedups)
    for title, (cases, speedups) in (("public cases", public), ("held-out cases", hidden)):
        if cases:
            yield case_table(cases, next((s for s in speedups if s.against == REFERENCE), None), title)
        yield from map(speedup_line, speedups)
    yield from _bars(result.bars)
    yield from _details(result, verbose)


def campaign(result: CampaignResult) -> Iterator[str | Table]:
    """Yield the result of a campaign."""
    yield f"campaign {result.campaign}: {number_of(result.kernels, 'kernel')}, {result.stopped}"
    if result.resume:
        yield f"`{result.resume}` goes on"
    yield f"it {result.start}"
    if result.final:
        yield final_table(result.final)
    yield f"\nchampion: {result.champion_reason}"
    yield from filter(None, [result.busy])
    if result.champion:
        yield result.told
    if standing := result.standing:
        what = "it is the standing champion now" if standing.replaced else "the standing champion stays"
        yield f"{what}: {standing.reason}"
    if result.speedup:
        yield f"speedup over the reference, in the confirmation: {result.factor}"
    yield from _bars(result.bars)
    if predicted := result.predicted:
        share = f"{100 * predicted.roofline_fraction:.1f} % of the roofline"
        yield f"predicted: {number(predicted.geomean_us)} us geomean, {share} ({predicted.by})"
    counts = {verdict: count for verdict, count in result.verdicts.items() if count}
    yield from parts({"verdicts": counts, "usd": result.usd, "source": result.source})


def capabilities(found: Sequence[Capability]) -> Iterator[str | Table]:
    """Yield the capabilities of a machine, and which required ones are missing."""
    rows = [
        {
            "ok": "ok" if one.ok else "MISSING" if one.needed else "no",
            "what": one.what,
            "detail": one.detail,
            "style": "failed" if one.needed and not one.ok else "",
        }
        for one in found
    ]
    yield Table({"ok": "", "what": "capability", "detail": "detail"}, rows)
    missing = ", ".join(one.what for one in found if one.needed and not one.ok)
    yield f"\nrequired, but missing: {missing}" if missing else "\nnothing that is required is missing"


def suite(result: SuiteResult) -> Iterator[str | Table]:
    """Yield the result of a suite."""
    rows = [
        {
            "problem": row.problem,
            "eager": _suite_speed(row, row.over_eager),
            "compiled": _suite_speed(row, row.over_compiled),
            "times": row.times,
            "reason": row.reason,
        }
        for row in result.rows
    ]
    columns = {"problem": "problem", "eager": "over eager", "compiled": f"over {COMPILED}"}
    columns |= {"times": "times", "reason": "result"}
    title = f"suite {result.suite}: {number_of(result.problems, 'problem')}, {result.refused} without a campaign"
    yield Table(columns, rows, title)
    for row in result.rows:
        if row.correct and row.over_compiled.ratio is None and row.over_compiled.remark:
            yield f"{COMPILED} has no time on {row.problem}: {row.over_compiled.remark}"
    yield from _shares("the eager reference", result.over_eager, result.times)
    yield from _shares(COMPILED, result.over_compiled, result.times)


def _suite_speed(row: SuiteRow, found: BaselineSpeedup) -> str:
    """Return a speedup of a suite's row; a predicted one has no interval."""
    if row.times == "predicted":
        return f"{found.ratio:.4g}x predicted" if found.ratio else ""
    return str(found)


def _shares(baseline: str, found: SuiteShares, times: str) -> Iterator[str]:
    """Yield fast_p and geometric means of a suite over a baseline."""
    over = f"over {baseline}, {number_of(found.compared, 'problem')}, {times or 'no'} times"
    kinds = [("fast_p", found.fast_p)]
    kinds += [("fast_p, shown by the test", found.fast_p_shown)] if times != "predicted" else []
    for title, shares in kinds:
        yield f"{title} {over}: {', '.join(f'p {p}: {100 * share:.1f} %' for p, share in shares.items())}"
    if found.geomean_correct:
        tail = f", of those that are faster {found.geomean_faster:.4g}x" if found.geomean_faster else ""
        yield (
            f"geometric mean of the speedups over {baseline}, over problems, without an interval: "
            f"{found.geomean_correct:.4g}x{tail}"
        )


def case_table(cases: Sequence[CaseResult], speedup: SpeedupResult | None, title: str = "") -> Table:
    """Return times per case, with those of the other source of `speedup` if both were timed on every case."""
    columns, rows = {"case": "case", "time_us": "time, us", "interval_us": "interval, us"}, list(map(dict, cases))
    us, others_us = results.mean([one.time_us for one in cases]), [one.against_us for one in cases if one.against_us]
    total: dict[str, Any] = {"case": "geometric mean", "style": "total", "time_us": us}
    if speedup and us and len(others_us) == len(cases):
        columns |= {"against_us": f"{speedup.against}, us", "speedup": "speedup"}
        for row, one, other_us in zip(rows, cases, others_us, strict=True):
            row["speedup"] = factor(other_us / one.time_us, one.ratio_interval)
        against_us = geomean(others_us)
        total |= {"against_us": against_us, "speedup": factor(against_us / us, speedup.interval)}
    return Table({**columns, "floor_us": "floor, us"}, [*rows, total], title)


def speedup_line(speedup: SpeedupResult) -> str:
    """Return a speedup with its interval and the test's decision."""
    decision = "faster" if speedup.faster else "not shown to be faster"
    slower = f"; slower on {', '.join(speedup.slower_cases)}" if speedup.slower_cases else ""
    test = f"margin {number(speedup.margin, 3)}, {number_of(speedup.stages, 'stage')}"
    return f"speedup over {speedup.against}: {speedup}, {decision} ({test}){slower}"


def _details(result: EvaluationResult, verbose: bool) -> Iterator[str | Table]:
    """Yield a GPU kernel's code and counters, the evidence of a failure, and on request everything else."""
    if verbose:
        shown = result.model_dump(mode="json", include=set(DETAILS))
        yield from parts({key: shown[key] for key in DETAILS})
    elif result.verdict is not Verdict.OK:
        yield from (f"  {text(row)}" for row in result.evidence)
    if result.compile and result.compile.objects:
        from kernel_scientist.report import compilation  # its imports take a tenth of a second

        yield from compilation.evaluated(result, result.compile)
    elif verbose and result.compile:
        yield from parts({"compile": result.compile.model_dump(mode="json")})
    if result.counters:
        from kernel_scientist.report import compilation

        yield from compilation.counter_lines(result.counters.kernels)
