"""The page of a campaign: the answer, the family tree, pictures, failures, findings, environment."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kernel_scientist.population import prediction_accuracy
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import published
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Confirmation, Trial
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.records.params import Params
from kernel_scientist.report import bars, figures, ranking, summaries, tables
from kernel_scientist.report.output import Table, say, text, write
from kernel_scientist.report.pages import answer, kernels, plots
from kernel_scientist.report.pages.rendering import html
from kernel_scientist.tracking.access import RecordedCampaign, read_campaign

if TYPE_CHECKING:
    from kernel_scientist.campaign.campaign import Campaign

MOST_FINDINGS = 40
MOST_BEST = 15
"""Rows of the table of the best kernels."""
ACCURACY = {
    "designer": "designed by",
    "experiments": "experiments",
    "failed": "failed, share",
    "within": "uplift within the range, share",
    "predicted": "predicted (median, %)",
    "measured": "measured (median, %)",
    "bias": "bias (points)",
    "rank": "rank correlation",
}


def file(campaign: str) -> Path:
    """Return the place of a campaign's page."""
    return environment.root() / "reports" / f"{campaign}.html"


def report(params: Params, campaign: str | None, out: Path | None, metrics: Path | None = None) -> None:
    """Write the page of a campaign, by default to `file`, and print its tables.

    `metrics`: a file for the figures that DVC compares; the times by case are written to cases.csv next to it.
    Raises SetupError when there is no such campaign.
    """
    recorded = read_campaign(params, campaign)
    validation = _validation(recorded)
    out = out or file(recorded.run.campaign)
    write(out, render(recorded, validation))
    if metrics:
        write(metrics, json.dumps(figures.of(recorded, validation), indent=1) + "\n")
        write(metrics.with_name("cases.csv"), figures.cases(recorded))
    say(tables.report(recorded, validation, out))


def finished(campaign: "Campaign", confirmation: Confirmation | None) -> str:
    """Return the page of a campaign that ends now."""
    context, best = campaign.context, campaign.champion()
    problem, validation = context.problem, None
    if confirmation and best:
        validation = summaries.validation_summary(context, best.kernel, confirmation)
    recorded = RecordedCampaign(
        store=campaign.store,
        run=campaign.run,
        population=campaign.population,
        final=campaign.final,
        problem=problem.name,
        target=context.target.name,
        published=problem.published,
        bars=validation["bars"] if validation else [],
    )
    return render(recorded, validation if validation and validation["speedups"] else None)


def _validation(recorded: RecordedCampaign) -> dict[str, Any] | None:
    """Return the JSON of `validate` if it is of this champion and has times: of the last `validate`, else the
    campaign's own."""
    best, path = recorded.champion(), environment.root() / "reports" / "validate.json"
    texts = [path.read_text()] if path.is_file() else []
    for found in (*map(json.loads, texts), recorded.store.validation(recorded.run)):
        validation = cast(dict[str, Any] | None, found)
        if best and validation and validation["digest"] == best.kernel.digest and validation["speedups"]:
            return validation
    return None


def render(recorded: RecordedCampaign, validation: dict[str, Any] | None) -> str:
    """Return the page's HTML. `validation`: the JSON of `validate` of the champion, if there is one."""
    population, best = recorded.population, recorded.champion()
    lessons, predictions = recorded.store.lessons(recorded.run), prediction_accuracy.predictions(population)
    final, entries = ranking.final_rows(population, recorded.final), population.entries()
    by_model = any(entry.by_model for entry in entries)
    tree = kernels.tree(population, best.kernel.name if best else None)
    return html(
        "page.html",
        campaign=recorded.run.campaign,
        answer=answer.of(recorded, validation),
        counts=", ".join(f"{n} {v}" for v, n in population.verdicts().items() if n),
        confirmed=tables.confirmed_table(validation, best.kernel.name) if validation and best else None,
        bars=bars.table([] if validation else recorded.bars),
        failed_bars=bars.failures(validation.get("bars", []) if validation else recorded.bars),
        final=tables.final_table(final) if final else None,
        published=tables.published_table(recorded),
        reason=answer.why(recorded),
        pictures=_pictures(recorded, best, by_model),
        best=kernels.best(population, best, by_model, MOST_BEST) if best else None,
        tree=tree,
        in_full=sum(line.card is not None for line in tree),
        names={line.name for line in tree},
        without_times=any(s.against == REFERENCE and not s.cases for t in population for s in t.evaluation.speedups),
        lineage=kernels.lineage(population, best),
        failures=kernels.failures(population),
        findings=lessons.latest(MOST_FINDINGS),
        accuracy=Table(ACCURACY, prediction_accuracy.table(predictions)) if predictions else None,
        uplifts=plots.uplifts(predictions) if any(p.measured is not None for p in predictions) else None,
        environment=_environment(recorded, best),
        source=best.kernel.source if best else "",
        by_model=by_model,
    )


def _pictures(recorded: RecordedCampaign, best: Trial | None, by_model: bool) -> dict[str, Any]:
    """Return the pictures that there is something to draw for."""
    population, entries = recorded.population, recorded.population.entries()
    curve = population.incumbent_scores()
    if not best or not any(curve):
        return {}
    scores = {entry.name: entry.score for entry in entries}
    pictures = {"speeds": plots.speeds({recorded.run.campaign: (curve, curve, curve)}, scores, by_model)}
    if any(entry.usd for entry in entries):
        pictures["costs"] = plots.costs(plots.cumulated(entry.usd for entry in entries), curve, by_model)
    times, floors_us = _cases(recorded, population, best)
    return pictures | {"cases": plots.cases(times, floors_us)} if times else pictures


def _cases(
    recorded: RecordedCampaign, population: Population, best: Trial
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Return the times of champion, reference and best published kernel by case, and the cases' roofline floors."""
    evaluation, times = best.evaluation, {best.kernel.name: best.evaluation.times_us}
    if speedup := evaluation.speedup_over(REFERENCE):
        times = {best.kernel.name: {}, "reference": {}} if speedup.cases else times
        for case, pair in speedup.cases.items():  # both of one run
            times[best.kernel.name][case], times["reference"][case] = pair.time_us, pair.against_us
    known = published.best(recorded.published)
    if beside := {case: known[case].us for case in evaluation.times_us if case in known}:
        times["best published"] = beside
    of = evaluation.predictions if evaluation.by_model else evaluation.timings
    return {k: v for k, v in times.items() if v}, {one.case: one.floor_us for one in of if one.floor_us}


def _environment(recorded: RecordedCampaign, best: Trial | None) -> list[tuple[str, str]]:
    """Return where and by what the champion was evaluated."""
    facts = {"campaign": recorded.run.campaign, "problem": recorded.problem, "target": recorded.target}
    facts |= {
        name: recorded.run.params[name]
        for name in ("language", "profile", "search.strategy")
        if name in recorded.run.params
    }
    if best:
        facts |= best.evaluation.environment | {"sandbox": text(best.evaluation.sandbox)}
    facts["MLflow run"] = f"{recorded.run.run_id} in {recorded.store.experiment}"
    return list(facts.items())
