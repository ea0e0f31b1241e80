"""The hypotheses of a campaign as a table: what was planned, what is known of it, and by which measurements."""

from collections import Counter
from typing import TYPE_CHECKING

from kernel_scientist.campaign import designs
from kernel_scientist.report.output import Table
from kernel_scientist.search import hypotheses
from kernel_scientist.search.hypotheses import Hypothesis, HypothesisState

if TYPE_CHECKING:
    from kernel_scientist.tracking.access import RecordedCampaign

COLUMNS = {
    "name": "hypothesis",
    "state": "state",
    "statement": "statement",
    "predicted": "predicted, %",
    "measured": "measured",
    "kernels": "kernels",
}
MOST = 200
"""Rows of a table."""
STYLES = {HypothesisState.SUPPORTED: "champion", HypothesisState.BLOCKED: "failed", HypothesisState.OPEN: "running"}
"""Styles of rows by state."""


def table(recorded: "RecordedCampaign", most: int = MOST) -> Table | None:
    """Return at most so many hypotheses, by state, those that kernels tried first; None if there are none."""
    known = hypotheses.of(designs.recorded(recorded.store, recorded.run), recorded.population)
    counts, order = Counter(one.state for one in known), list(HypothesisState)
    shown = sorted(known, key=lambda one: (not one.tests, order.index(one.state)))[:most]
    told = ", ".join(f"{counts[state]} {state.value}" for state in order if counts[state])
    rest = f"; {len(known) - len(shown)} more are not shown" if len(known) > len(shown) else ""
    return Table(COLUMNS, [_row(one) for one in shown], f"hypotheses: {told}{rest}") if known else None


def _row(one: Hypothesis) -> dict[str, str]:
    plan = one.experiment
    return {
        "name": one.name,
        "state": one.state.value,
        "statement": f"{plan.title} ({plan.mechanism})" if plan.mechanism else plan.title,
        "predicted": "{:g} to {:g}".format(*plan.uplift),
        "measured": "; ".join(test.words for test in one.tests) or f"not tried, planned on {one.base}",
        "kernels": ", ".join(test.kernel for test in one.tests),
        "style": STYLES.get(one.state, ""),
    }
