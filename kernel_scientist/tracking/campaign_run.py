"""A campaign's parent run in MLflow, as far as others need it."""

from dataclasses import dataclass
from typing import Any

from kernel_scientist.tracking.run_content import CAMPAIGN

ENDED, ENDED_S = "ended", "ended_s"
"""Tag and metric: why a campaign ended, empty while it runs; its wall time in seconds when its search ended."""
WITHOUT_A_WORD = "its process ended without a word"
"""Why a campaign ended whose process could not say it."""


@dataclass(frozen=True)
class CampaignRun:
    """A campaign's parent run."""

    run_id: str
    campaign: str
    params: dict[str, str]
    """By their full names: those in force where one campaign was asked for, in a list those that MLflow shows."""
    tags: dict[str, str]
    metrics: dict[str, float]
    running: bool
    """Whether it has not ended, as far as the store knows."""

    @staticmethod
    def of(run: Any) -> "CampaignRun":
        """Return that of a run as MLflow's client returns it."""
        tags, running = dict(run.data.tags), run.info.status == "RUNNING"
        params, metrics = dict(run.data.params), dict(run.data.metrics)
        return CampaignRun(run.info.run_id, tags[CAMPAIGN], params, tags, metrics, running)

    @property
    def elapsed_s(self) -> float:
        """Return the campaign's wall time in seconds when its search ended, or when its last kernel was logged."""
        return max(self.metrics.get("elapsed_s", 0.0), self.metrics.get(ENDED_S, 0.0))
