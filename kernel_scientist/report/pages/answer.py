"""The first lines of a campaign's page: how much faster, how sure, confirmed how, on what machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel_scientist.problems import published
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.report import ranking
from kernel_scientist.report.output import interval, number, ratio
from kernel_scientist.report.predictions import provenance
from kernel_scientist.tracking.access import RecordedCampaign

FACTS = ("machine", "gpu", "cores", "threads", "compiler", "torch", "system")
"""Fields of an evaluation's environment that name the machine, in the order in which they are shown."""


@dataclass(frozen=True)
class Answer:
    """What came of a campaign, in a headline and a few facts."""

    headline: str
    status: str
    """`confirmed`, `not confirmed`, `not validated`, `predicted` or `no kernel`."""
    facts: Sequence[tuple[str, str]]


def of(recorded: RecordedCampaign, validation: Mapping[str, Any] | None) -> Answer:
    """Return the answer. `validation`: the JSON of `validate` of the champion, if there is one."""
    best = recorded.champion()
    if best is None:
        counts = ", ".join(f"{n} {v}" for v, n in recorded.population.verdicts().items() if n)
        return Answer("No kernel is correct.", "no kernel", [("kernels", counts)])
    where = ("machine", machine(best))
    if best.evaluation.by_model:
        return Answer(_predicted(best), "predicted", [*_beside_published(recorded, best), ("how", _basis(best))])
    headline, sure = _measured(recorded, best, validation)
    if validation is None:
        how = "in the campaign only: run kernel-scientist validate for fresh processes and held-out cases"
        return Answer(headline, "not validated", [("interval", sure), ("timed", how), where])
    held_out = next((s for s in validation["held_out"]["speedups"] if s["against"] == REFERENCE), None)
    facts = [("interval", sure)]
    if held_out:
        facts.append(("held-out cases", f"{ratio(held_out['ratio'])}, interval: {interval(held_out['interval'])}"))
    facts += [("confirmation", f"in fresh processes, with new seeds: {validation['why']}"), where]
    return Answer(headline, "confirmed" if validation["confirmed"] else "not confirmed", facts)


def machine(trial: Trial) -> str:
    """Return what names the machine of an evaluation."""
    known = trial.evaluation.environment
    return ", ".join(
        f"{known[name]}{f' {name}' if name in ('cores', 'threads') else ''}" for name in FACTS if name in known
    )


def _measured(recorded: RecordedCampaign, best: Trial, validation: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return the headline and the interval, by the best run that there is: confirmation, final, own run."""
    name, own = best.kernel.name, best.evaluation.speedup_over(REFERENCE)
    confirmed = next((s for s in (validation or {"speedups": []})["speedups"] if s["against"] == REFERENCE), None)
    if confirmed:
        value, sure = confirmed["ratio"], interval(confirmed["interval"])
    elif recorded.final and recorded.final.ranking():
        value, sure = recorded.final.speedup(name), "none: the final compares finalists"
    else:
        value = own.ratio if own else None
        sure = interval(own.interval) if own and own.resolved else "too few blocks for an interval"
    what = "a seed, which no experiment beat" if best.kernel.experiment is None else best.kernel.experiment.title
    if value is None:
        return f"{name} is the champion ({what}); it has no time.", sure
    return f"{name} computes {recorded.problem} at {ratio(value)} the reference's speed ({what}).", sure


def _predicted(best: Trial) -> str:
    title = best.kernel.experiment.title if best.kernel.experiment else "a seed, which no experiment beat"
    us = number(best.evaluation.predicted_us)
    return f"{best.kernel.name} is predicted to take {us} us ({title}). Nothing was measured."


def _basis(best: Trial) -> str:
    return provenance(best.evaluation.predictions)


def _beside_published(recorded: RecordedCampaign, best: Trial) -> list[tuple[str, str]]:
    known = published.best(recorded.published)
    pairs = [(us, known[case].us) for case, us in best.evaluation.times_us.items() if case in known]
    if not pairs:
        return []
    faster = sum(ours < theirs for ours, theirs in pairs)
    return [("beside published times", f"predicted below the best published time on {faster} of {len(pairs)} cases")]


def why(recorded: RecordedCampaign) -> str:
    """Return the reason for the choice of the champion."""
    return ranking.reason(recorded.population, recorded.final)
