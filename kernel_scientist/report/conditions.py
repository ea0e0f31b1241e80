"""Under which conditions a campaign was measured: what is said at the top of its report if the machine was busy."""

from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.factors import busy
from kernel_scientist.records.results import ValidationResult

LATEST = 100
"""Timings that are looked at: the latest."""


def told(
    population: Population, final: Final | None, champion: Trial | None, validation: ValidationResult | None
) -> str:
    """Return sentences about the timings of a campaign that were made on a busy machine; empty if there are none.

    `validation`: the result of `validate` of the champion, if there is one.
    """
    confirmed = busy(validation.environment) if validation else ""
    parts = [f"The confirmation was {confirmed}."] if confirmed else []
    parts += [f"The final was {final.busy}."] if final and final.busy else []
    own = champion.evaluation.busy if champion else ""
    parts += [f"The champion's own run was {own}."] if own else []
    timed = [trial for trial in population.latest(LATEST) if trial.evaluation.timings]
    disturbed = sum(bool(trial.evaluation.busy) for trial in timed)
    parts += [f"So were {disturbed} of the latest {len(timed)} timings."] if parts and disturbed else []
    if not parts and disturbed:
        parts = [f"{disturbed} of the latest {len(timed)} timings were made on a busy machine."]
    return " ".join([*parts, "Intervals are wide; repeat it on a quiet machine."]) if parts else ""
