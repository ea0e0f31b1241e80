"""Results for tests: with nothing in them but what a test names."""

from typing import Any

from kernel_scientist.records.campaign_result import CampaignResult, RunAddress
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.results import BarResult, HeldOutResult, PredictedResult, ValidationResult

TEXTS = ("problem", "target", "reason", "coverage", "why", "kernel", "digest")
LISTS = ("labels", "evidence", "sandbox", "clocks", "cases", "speedups", "bars")
NOTHING = ("geomean_us", "speedup", "predicted", "counters", "compile")


def validation(**fields: Any) -> ValidationResult:
    """Return a result of `validate`: correct, and not confirmed."""
    empty: dict[str, Any] = dict.fromkeys(TEXTS, "") | dict.fromkeys(LISTS, ()) | dict.fromkeys(NOTHING)
    empty |= {"verdict": Verdict.OK, "status": "not confirmed", "confirmed": False, "environment": {}, "seconds": {}}
    return ValidationResult(**empty | {"held_out": HeldOutResult(cases=(), speedups=())} | fields)


def campaign(**fields: Any) -> CampaignResult:
    """Return a result of `optimize` without a champion."""
    texts = ("campaign", "problem", "target", "start", "champion_reason", "why", "interval_why", "busy", "stopped")
    empty: dict[str, Any] = dict.fromkeys(texts, "") | dict.fromkeys(("final", "cases", "bars"), ())
    empty |= dict.fromkeys(("champion", "verdict", "speedup", "interval", "predicted", "source"))
    empty |= {"status": "not confirmed", "confirmed": False, "kernels": 0, "verdicts": {}, "usd": 0.0, "tokens": 0}
    return CampaignResult(**empty | {"mlflow": RunAddress(uri="", run="")} | fields)


def bar(kernel: str, predicted_us: float | None, reason: str) -> BarResult:
    """Return what stands beside a champion, with a predicted time or none."""
    times = ("us", "champion_us", "ratio", "interval", "held_out_us", "held_out_ratio", "held_out_interval")
    untimed: dict[str, Any] = dict.fromkeys(times) | {"interval_why": "", "verdict": "ok", "reason": reason}
    return BarResult(kernel=kernel, predicted_us=predicted_us, **untimed)


def predicted(geomean_us: float) -> PredictedResult:
    """Return predictions of which only the mean counts."""
    empty: dict[str, Any] = {"machine": "MI300X", "calibration": "datasheet", "calibrated": None, "by": "a model"}
    return PredictedResult(geomean_us=geomean_us, roofline_fraction=0.1, cases=(), coverage="", **empty)
