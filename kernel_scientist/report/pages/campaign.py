"""The page of a campaign: the answer, the family tree, pictures, failures, findings, environment."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_scientist.campaign import agent_command, beginning, ending, results
from kernel_scientist.population import curves, prediction_accuracy, standings
from kernel_scientist.problems import published
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Confirmation, Trial
from kernel_scientist.records.factors import UNKNOWN, factor, is_resolved, number
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.records.params import Params
from kernel_scientist.records.results import ValidationResult
from kernel_scientist.report import conditions, figures, hypotheses, tables
from kernel_scientist.report.output import Table, html, say, text, write, write_json
from kernel_scientist.report.pages import kernels, plots
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
    "pairs": "resolved pairs",
    "measured": "measured (median)",
    "bias": "bias (points)",
    "rank": "rank correlation",
}


@dataclass(frozen=True)
class PageSummary:
    """The first lines of a page: how much faster, how sure, confirmed how, on what machine."""

    headline: str
    status: str
    """`confirmed`, `correct`, `not confirmed`, `not validated`, `predicted` or `no kernel`."""
    facts: Sequence[tuple[str, str]]


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
        write_json(metrics, figures.of(recorded, validation))
        write(metrics.with_name("cases.csv"), figures.cases(recorded))
    say(tables.report(recorded, validation, out))


def finished(campaign: "Campaign", confirmation: Confirmation | None) -> str:
    """Return the page of a campaign that ends now."""
    context, best = campaign.context, campaign.champion()
    problem, validation = context.problem, None
    if confirmation and best:
        validation = results.of_confirmation(context, best.kernel, confirmation)
    recorded = RecordedCampaign(
        store=campaign.store,
        run=ending.noted(campaign.run, campaign.plan.why(), campaign.plan.searched_s()),
        population=campaign.population,
        final=campaign.final,
        problem=problem.name,
        target=context.address.name,
        published=problem.published,
        bars=validation.bars if validation else (),
    )
    return render(recorded, validation if validation and validation.speedups else None)


def _validation(recorded: RecordedCampaign) -> ValidationResult | None:
    """Return the result of `validate` if it is of this champion on this target and has times: of the last `validate`,
    else the campaign's own."""
    best = recorded.champion()
    for validation in (_last_validation(recorded), recorded.store.validation(recorded.run)):
        if best and validation and validation.digest == best.kernel.digest and validation.speedups:
            return validation
    return None


def _last_validation(recorded: RecordedCampaign) -> ValidationResult | None:
    """Return the result of the last `validate`; None if it is of another problem or target, or damaged."""
    try:
        found = ValidationResult.model_validate_json((environment.root() / "reports" / "validate.json").read_text())
    except (OSError, ValueError):
        return None
    return found if (found.problem, found.target) == (recorded.problem, recorded.target) else None


def render(recorded: RecordedCampaign, validation: ValidationResult | None) -> str:
    """Return the page's HTML. `validation`: the result of `validate` of the champion, if there is one."""
    population, best = recorded.population, recorded.champion()
    lessons, predictions = recorded.store.lessons(recorded.run), prediction_accuracy.predictions(population)
    accuracy = [one.model_dump() for one in prediction_accuracy.by_designer(predictions)]
    final, entries = standings.final_rows(population, recorded.final), population.entries()
    by_model = any(entry.by_model for entry in entries)
    tree = kernels.tree(population, best.kernel.name if best else None)
    return html(
        "page.html",
        campaign=recorded.run.campaign,
        ended=ending.of(recorded.run).words,
        population=population,
        answer=answer(recorded, validation),
        counts=", ".join(f"{n} {v}" for v, n in population.verdicts().items() if n),
        confirmed=tables.confirmed_table(validation, best.kernel.name) if validation and best else None,
        bars=tables.bar_table(() if validation else recorded.bars),
        failed_bars=tables.bar_failures(validation.bars if validation else recorded.bars),
        final=tables.final_table(final) if final else None,
        published=tables.published_table(recorded),
        reason=standings.reason(population, recorded.final),
        start=beginning.recorded(recorded.store, recorded.run).start,
        pictures=_pictures(recorded, best, by_model),
        best=kernels.best(population, best, by_model, MOST_BEST) if best else None,
        tree=tree,
        in_full=sum(line.card is not None for line in tree),
        names={line.name for line in tree},
        without_times=any(s.against == REFERENCE and not s.cases for t in population for s in t.evaluation.speedups),
        lineage=standings.lineage(population, best.kernel) if best else [],
        failures=kernels.failures(population),
        findings=lessons.latest(MOST_FINDINGS),
        hypotheses=hypotheses.table(recorded),
        accuracy=Table(ACCURACY, accuracy) if accuracy else None,
        uplifts=plots.uplifts(predictions) if any(p.measured is not None for p in predictions) else None,
        environment=_environment(recorded, best),
        source=best.kernel.source if best else "",
        by_model=by_model,
    )


def answer(recorded: RecordedCampaign, validation: ValidationResult | None) -> PageSummary:
    """Return what came of a campaign, in a headline and a few facts. `validation`: as for `render`."""
    best = recorded.champion()
    if best is None:
        counts = ", ".join(f"{n} {v}" for v, n in recorded.population.verdicts().items() if n)
        return PageSummary(standings.no_champion(recorded.population), "no kernel", [("kernels", counts)])
    made = best.kernel
    what = "a seed" if made.is_seed else made.title
    if not made.experiment:
        tried = any(trial.kernel.experiment for trial in recorded.population)
        what += ", which no experiment beat" if tried else "; no experiment was recorded"
    if best.evaluation.by_model:
        us, how = number(best.evaluation.predicted_us), results.model_behind(best.evaluation.predictions)
        headline = f"{best.kernel.name} is predicted to take {us} us ({what}). Nothing was measured."
        return PageSummary(headline, "predicted", [*_beside_published(recorded, best), ("how", how)])
    speedup, bounds, run = _speedup(recorded, best, validation)
    speed = f"{speedup:.4g}x" if speedup and is_resolved(bounds) else UNKNOWN
    headline = f"{best.kernel.name} computes {recorded.problem} at {speed} the reference's speed ({what})."
    if speedup and speed == UNKNOWN:
        headline = (
            f"{best.kernel.name} is the champion of {recorded.problem} ({what}); how fast it is, is not resolved."
        )
    if speedup is None:
        headline = f"{best.kernel.name} is the champion ({what}); it has no time."
    facts, where = (
        [("speedup", f"{factor(speedup, bounds)}, in {run}")],
        ("machine", best.evaluation.machine),
    )
    if busy := conditions.told(recorded.population, recorded.final, best, validation):
        facts.insert(0, ("conditions", busy))
    if validation is None:
        how = "in the campaign only: run kernel-scientist validate for fresh processes and held-out cases"
        return PageSummary(headline, "not validated", [*facts, ("timed", how), where])
    if held_out := validation.held_out_over(REFERENCE):
        facts.append(("held-out cases", str(held_out)))
    facts += [("confirmation", f"in fresh processes, with new seeds: {validation.why}"), where]
    return PageSummary(headline, validation.status, facts)


def _speedup(
    recorded: RecordedCampaign, best: Trial, validation: ValidationResult | None
) -> tuple[float | None, Sequence[float] | None, str]:
    """Return speedup and interval of the champion by the best run that there is, and which that is."""
    if validation and (confirmed := validation.over(REFERENCE)):
        return confirmed.ratio, confirmed.interval, "the confirmation"
    if recorded.final and recorded.final.ranking():
        return recorded.final.speedup(best.kernel.name), recorded.final.interval(best.kernel.name), "the final"
    own = best.evaluation.speedup_over(REFERENCE)
    return (own.ratio, own.interval, "its own run") if own else (None, None, "no run")


def _beside_published(recorded: RecordedCampaign, best: Trial) -> list[tuple[str, str]]:
    gpu = best.evaluation.predictions[0].machine if best.evaluation.predictions else "none"
    known = published.best(published.on(recorded.published, gpu))
    faster = [us < known[case].us for case, us in best.evaluation.times_us.items() if case in known]
    words = f"predicted below the best published time on {sum(faster)} of {len(faster)} cases"
    return [("beside published times", words)] if faster else []


def _pictures(recorded: RecordedCampaign, best: Trial | None, by_model: bool) -> dict[str, Any]:
    """Return the pictures that there is something to draw for."""
    if not best:
        return {}
    pictures = dict[str, Any]()
    entries, line = recorded.population.entries(), curves.of(recorded.population)
    if any(point.ratio for point in line):
        low, middle, high = ([point[end] for point in line] for end in range(3))
        points = {trial.kernel.name: curves.point(trial) for trial in recorded.population}
        curve = {recorded.run.campaign: (low, middle, high)}
        pictures["speeds"] = plots.speeds(curve, points, by_model, best.kernel.name)
        if any(entry.usd for entry in entries):
            usd = list(itertools.accumulate(entry.usd for entry in entries))
            pictures["costs"] = plots.costs(usd, (low, middle, high), by_model)
    times, floors_us = figures.case_times(recorded, best, best.kernel.name)
    return pictures | {"cases": plots.cases(times, floors_us)} if times else pictures


def _environment(recorded: RecordedCampaign, best: Trial | None) -> list[tuple[str, str]]:
    """Return where and by what the champion was evaluated."""
    params = recorded.run.params
    facts = {"campaign": recorded.run.campaign, "problem": recorded.problem, "target": recorded.target}
    facts |= {name: params[name] for name in ("language", "profile", "search.strategy") if name in params}
    if command := params.get("search.agent"):
        facts |= {"search.agent": command, "cost of the agent": agent_command.UNPRICED}
    if best:
        facts |= best.evaluation.environment | {"sandbox": text(best.evaluation.sandbox)}
    facts["MLflow run"] = f"{recorded.run.run_id} in {recorded.store.experiment}"
    return list(facts.items())
