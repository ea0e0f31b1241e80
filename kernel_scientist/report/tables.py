"""Results as people read them: `evaluate`, `validate`, `optimize` and `report` as lines and tables.

A ratio is the quotient of two times of one run, and stands beside its interval (`records.factors`).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_scientist.campaign import champions
from kernel_scientist.population.entry import score
from kernel_scientist.problems import published
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Counters, Trial
from kernel_scientist.records.factors import busy, factor
from kernel_scientist.records.kernel import COMPILED, REFERENCE, Verdict
from kernel_scientist.report import conditions, ranking
from kernel_scientist.report.output import Table, number, parts, text
from kernel_scientist.report.summaries import beside, mean, told

if TYPE_CHECKING:
    from kernel_scientist.tracking.access import RecordedCampaign

DETAILS = ("labels", "evidence", "sandbox", "clocks", "environment", "seconds", "coverage")
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


def _with_intervals(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of `summaries.beside` with its ratios as texts."""
    found = {key: factor(row[key], row[f"{key.removesuffix('ratio')}interval"]) for key in ("ratio", "held_out_ratio")}
    return {**row, **found}


def kernel_row(trial: Trial, best: Trial | None = None) -> dict[str, str]:
    """Return a kernel's row in a table with the columns `MEASURED` or `PREDICTED`."""
    kernel, evaluation, times = trial.kernel, trial.evaluation, ranking.recorded(trial)
    style = "" if evaluation.verdict is Verdict.OK else "failed"
    us = number(evaluation.predicted_us if evaluation.by_model else times["geomean_us"])
    unverified = " unverified" if us and evaluation.verdict is not Verdict.OK else ""
    return {
        "kernel": kernel.name,
        "base": kernel.base or ("seed" if kernel.is_seed else "champion"),
        "experiment": kernel.experiment.title if kernel.experiment else kernel.report,
        "verdict": evaluation.verdict.value,
        "us": us + unverified,
        "reference_us": number(times["reference_us"]),
        "speedup": speed_text(trial),
        "style": "champion" if best and best.kernel.name == kernel.name else style,
    }


def final_table(ranked: Sequence[dict[str, Any]]) -> Table:
    """Return the table of a final from the rows of `ranking.final_rows`, of which the first is the champion's."""
    rows = [
        {
            **row,
            **{f"recorded_{key}": value for key, value in row["recorded"].items()},
            "speedup": factor(row["speedup"], row["interval"]),
            "recorded_speedup": factor(row["recorded"]["speedup"], row["recorded"]["interval"]),
        }
        for row in ranked
    ]
    rows[0]["style"] = "champion"
    return Table(FINAL, rows, "final: all finalists timed in one run")


def confirmed_table(validation: dict[str, Any], champion: str, title: str = "") -> Table:
    """Return the sources of a validation (reference, seeds and bars from slow to fast, champion) with their times."""
    held_out = {s["against"]: s for s in validation["held_out"]["speedups"]}
    roles = {REFERENCE: "reference", champions.STANDING: "standing champion"} | {
        bar["kernel"]: "bar" for bar in validation.get("bars", [])
    }
    rows: list[dict[str, Any]] = [
        {
            "role": roles.get(speedup["against"], "seed"),
            "kernel": "PyTorch" if speedup["against"] == REFERENCE else speedup["against"],
            **_with_intervals(beside(speedup, held_out.get(speedup["against"]))),
        }
        for speedup in validation["speedups"]
    ]
    rows.sort(key=lambda row: (ROLES.index(row["role"]), -(row["us"] or 0.0)))
    if seeds := [row for row in rows if row["role"] == "seed"]:
        seeds[-1]["role"] = "best seed"
    first = validation["speedups"][0]
    hidden = held_out.get(first["against"], {"cases": []})  # none if they were not timed on held-out cases
    us, held_out_us = mean(first["cases"], "time_us"), mean(hidden["cases"], "time_us")
    won = {"role": "champion", "kernel": champion, "us": us, "held_out_us": held_out_us, "style": "champion"}
    return Table(CONFIRMED, [*rows, won], title)


def bar_table(bars: Sequence[dict[str, Any]]) -> Table | None:
    """Return the bars (`summaries.bar_rows`) that were timed or predicted; None if there are none."""
    if measured := [one for one in bars if one["us"] is not None]:
        return Table(BARS, list(map(_with_intervals, measured)), "bars, timed in one run with the champion")
    predicted = [one for one in bars if one["predicted_us"] is not None]
    return Table(PREDICTED_BARS, predicted, "bars, predicted") if predicted else None


def bar_failures(bars: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a sentence about each bar that has no time."""
    for one in bars:
        if one["us"] is None and one["predicted_us"] is None:
            correct = one["verdict"] == Verdict.OK.value
            why = (
                one["reason"] or "the champion itself was not timed"
                if correct
                else f"{one['verdict']}: {one['reason']}"
            )
            yield f"bar {one['kernel']} has no time: {why}"


def _bars(bars: Sequence[dict[str, Any]]) -> Iterator[str | Table]:
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


def report(recorded: "RecordedCampaign", validation: dict[str, Any] | None, page: Path) -> Iterator[str | Table]:
    """Yield confirmation, final and files of a campaign."""
    best, root = recorded.champion(), environment.root()
    if busy := conditions.told(recorded.population, recorded.final, best, validation):
        yield busy
    if validation and best:
        title = f"{recorded.problem}: measured in fresh processes, geometric means over the cases"
        yield confirmed_table(validation, best.kernel.name, title)
        yield told(validation)
        yield from bar_failures(validation.get("bars", []))
    else:
        yield from _bars(recorded.bars)
    if ranked := ranking.final_rows(recorded.population, recorded.final):
        yield final_table(ranked)
    if beside := published_table(recorded):
        yield beside
    yield f"\nchampion   {ranking.reason(recorded.population, recorded.final)}"
    for name, path in (
        ("source", champions.of_campaign(recorded.problem, recorded.run.campaign) / champions.SOURCE),
        ("report", page),
    ):
        if path.exists():
            yield f"{name:10} {path.relative_to(root) if path.is_relative_to(root) else path}"
    yield "UIs        make ui   (Prefect at http://127.0.0.1:4200, MLflow at http://127.0.0.1:5000)"


def evaluation(summary: dict[str, Any], verbose: bool) -> Iterator[str | Table]:
    """Yield verdict, time per case, speedup with interval and floor; with `verbose` everything."""
    verdict, reason = Verdict(summary["verdict"]), summary["reason"]
    said = verdict.because(reason) if reason else verdict.value
    yield f"{said} ({summary['problem']} on {summary['target']})"
    yield from filter(None, [busy(summary["environment"])])
    if summary["cases"]:
        yield case_table(summary["cases"], summary["speedup"])
    if summary["speedup"]:
        yield speedup_line(summary["speedup"])
    yield from _details(summary, verbose)


def validation(summary: dict[str, Any], verbose: bool) -> Iterator[str | Table]:
    """Yield whether a kernel is confirmed, and its times on public and held-out cases."""
    if campaign := summary.get("recorded"):
        same = "kernel, baseline, evaluator, settings and machine are the same, so nothing was timed again"
        yield f"recorded by campaign {campaign}; {same}"
    yield told(summary)
    yield from filter(None, [busy(summary["environment"])])
    for title, timed in (("public cases", summary), ("held-out cases", summary["held_out"])):
        if timed["cases"]:
            over_reference = next((s for s in timed["speedups"] if s["against"] == REFERENCE), None)
            yield case_table(timed["cases"], over_reference, title)
        yield from map(speedup_line, timed["speedups"])
    yield from _bars(summary["bars"])
    yield from _details(summary, verbose)


def campaign(summary: dict[str, Any]) -> Iterator[str | Table]:
    """Yield the result of a campaign."""
    yield f"campaign {summary['campaign']}: {summary['kernels']} kernels, {summary['stopped']}"
    yield f"it {summary['start']}"
    if summary["final"]:
        yield final_table(summary["final"])
    yield f"\nchampion: {summary['champion_reason']}"
    yield from filter(None, [summary["busy"]])
    if summary["champion"]:
        yield told(summary)
    if standing := summary.get("standing"):
        what = "it is the standing champion now" if standing["replaced"] else "the standing champion stays"
        yield f"{what}: {standing['reason']}"
    if summary["speedup"]:
        yield f"speedup over the reference, in the confirmation: {factor(summary['speedup'], summary['interval'])}"
    yield from _bars(summary["bars"])
    if predicted := summary["predicted"]:
        share = f"{100 * predicted['roofline_fraction']:.1f} % of the roofline"
        yield f"predicted: {number(predicted['geomean_us'])} us geomean, {share} ({predicted['by']})"
    counts = {verdict: count for verdict, count in summary["verdicts"].items() if count}
    yield from parts({"verdicts": counts, "usd": summary["usd"], "source": summary["source"]})


def suite(summary: dict[str, Any]) -> Iterator[str | Table]:
    """Yield the result of a suite."""
    compiled = [row.get(COMPILED) or {} for row in summary["rows"]]
    rows = [
        {**row, "speedup": _suite_speed(row, row), COMPILED: _suite_speed(row, one)}
        for row, one in zip(summary["rows"], compiled, strict=True)
    ]
    columns = {"problem": "problem", "speedup": "over eager", COMPILED: f"over {COMPILED}"}
    columns |= {"times": "times", "reason": "result"}
    title = f"suite {summary['suite']}: {summary['problems']} problems, {summary['refused']} without a campaign"
    yield Table(columns, rows, title)
    for row, one in zip(rows, compiled, strict=True):
        if row["correct"] and one.get("speedup") is None and one.get("baseline"):
            yield f"{COMPILED} has no time on {row['problem']}: {one['baseline']}"
    yield from _shares("the eager reference", summary, summary["times"])
    yield from _shares(COMPILED, summary[COMPILED], summary["times"])


def _suite_speed(row: dict[str, Any], found: dict[str, Any]) -> str:
    """Return a speedup of a suite's row; a predicted one has no interval."""
    value = found.get("speedup")
    if row.get("times") == "predicted":
        return f"{value:.4g}x predicted" if value else ""
    return factor(value, found.get("interval"))


def _shares(baseline: str, found: dict[str, Any], times: str) -> Iterator[str]:
    """Yield fast_p and geometric means of a suite over a baseline."""
    over = f"over {baseline}, {found['compared']} problems, {times} times"
    kinds = [("fast_p", found["fast_p"])]
    kinds += [("fast_p, shown by the test", found["fast_p_shown"])] if times != "predicted" else []
    for title, shares in kinds:
        yield f"{title} {over}: {', '.join(f'p {p}: {100 * share:.1f} %' for p, share in shares.items())}"
    if found["geomean_correct"]:
        faster = found["geomean_faster"]
        tail = f", of those that are faster {faster:.4g}x" if faster else ""
        yield (
            f"geometric mean of the speedups over {baseline}, over problems, without an interval: "
            f"{found['geomean_correct']:.4g}x{tail}"
        )


def case_table(cases: list[dict[str, Any]], speedup: dict[str, Any] | None, title: str = "") -> Table:
    """Return times per case, with those of the other source of `speedup` if both were timed on every case."""
    columns, timed = {"case": "case", "time_us": "time, us", "interval_us": "interval, us"}, ("time_us",)
    if speedup and all(row["against_us"] for row in cases):
        columns |= {"against_us": f"{speedup['against']}, us", "speedup": "speedup"}
        timed = ("time_us", "against_us")
        cases = [{**row, "speedup": factor(row["against_us"] / row["time_us"], row["ratio_interval"])} for row in cases]
    total: dict[str, Any] = {"case": "geometric mean", "style": "total", **{key: mean(cases, key) for key in timed}}
    if "speedup" in columns:
        total["speedup"] = factor(total["against_us"] / total["time_us"], speedup["interval"] if speedup else None)
    return Table({**columns, "floor_us": "floor, us"}, [*cases, total], title)


def speedup_line(speedup: dict[str, Any]) -> str:
    """Return a speedup with its interval and the test's decision."""
    decision = "faster" if speedup["faster"] else "not shown to be faster"
    slower = f"; slower on {', '.join(speedup['slower_cases'])}" if speedup["slower_cases"] else ""
    test = f"margin {number(speedup['margin'], 3)}, {speedup['stages']} stage{'s' if speedup['stages'] > 1 else ''}"
    measured = factor(speedup["ratio"], speedup["interval"], speedup.get("dropped", ""))
    return f"speedup over {speedup['against']}: {measured}, {decision} ({test}){slower}"


def _details(summary: dict[str, Any], verbose: bool) -> Iterator[str | Table]:
    """Yield a GPU kernel's code and counters, the evidence of a failure, and on request everything else."""
    if verbose:
        yield from parts({key: summary[key] for key in DETAILS})
    elif summary["verdict"] != "ok":
        yield from (f"  {text(row)}" for row in summary["evidence"])
    if summary["compile"] and summary["compile"]["objects"]:
        from kernel_scientist.report import compilation  # its imports take a tenth of a second

        yield from compilation.evaluated(summary)
    elif verbose and summary["compile"]:
        yield from parts({"compile": summary["compile"]})
    if counters := (summary["counters"] or {}).get("kernels"):
        from kernel_scientist.report import compilation

        yield from compilation.counter_lines([Counters.model_validate(row) for row in counters])
