"""Predicted times for people and for JSON, beside published ones."""

from collections.abc import Sequence
from typing import Any

from kernel_scientist.problems import published
from kernel_scientist.records.evaluation import Prediction


def rows(predictions: Sequence[Prediction], times: Sequence[published.PublishedTime]) -> list[dict[str, Any]]:
    """Return one row per case, with the best published time beside the predicted one, None where there is none."""
    known = published.best(times)
    return [
        {
            **p.model_dump(mode="json", exclude={"machine", "calibration", "calibrated"}),
            "published_us": known[p.case].us if p.case in known else None,
            "published": known[p.case].origin if p.case in known else "",
        }
        for p in predictions
    ]


def provenance(predictions: Sequence[Prediction]) -> str:
    """Return a text that names the model behind predictions and its calibration."""
    if not predictions:
        return ""
    return f"model of {predictions[0].machine}, {predictions[0].basis}; predicted, not measured"
