"""When a campaign's incumbent changed last: what shows that nothing is gained any more."""

from collections.abc import Mapping
from typing import NamedTuple

KERNELS, SECONDS = "best_since_kernels", "best_since_s"
"""Metrics of a campaign's run."""


class IncumbentChange(NamedTuple):
    """A change of the incumbent."""

    incumbent: str | None
    """Its name; None before the first correct kernel."""
    kernels: int
    """How many kernels the campaign had with it."""
    elapsed_s: float
    """The campaign's wall time in seconds when it was recorded."""

    @staticmethod
    def recorded(metrics: Mapping[str, float], incumbent: str | None) -> "IncumbentChange":
        """Return the change that the metrics of a campaign's run state."""
        return IncumbentChange(incumbent, int(metrics.get(KERNELS, 0)), metrics.get(SECONDS, 0.0))

    @property
    def metrics(self) -> dict[str, float]:
        """Return the change as metrics; none without an incumbent."""
        return {KERNELS: self.kernels, SECONDS: self.elapsed_s} if self.incumbent else {}
