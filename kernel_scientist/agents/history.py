"""Recorded campaigns as an agent reads them: kernels, lineage, verdicts, times on public cases."""

from typing import Any

from kernel_scientist.agents import withheld
from kernel_scientist.agents.work import Json, Settings
from kernel_scientist.campaign import conclusion, results
from kernel_scientist.population.entry import over_base
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.campaign_result import CampaignResult
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Speedup, Trial
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.records.params import load
from kernel_scientist.tracking import found
from kernel_scientist.tracking.found import StoredCampaign

CONFIRMED = ("status", "confirmed", "verdict", "champion", "speedup", "interval", "interval_why", "busy", "kernels")
"""Fields of a campaign's result that an agent gets; of `why` only a part."""
SPEEDUP = {"ratio", "interval", "resolved", "faster", "dropped"}


def campaign(settings: Settings, campaign: str = "", most: int = 50) -> Json:
    """Tell of a campaign, by default the one that was started last: its latest kernels, at most `most`."""
    stored = find(settings, campaign)
    run, population = stored.run, stored.population
    told: Json = {
        "problem": run.params.get("problem", ""),
        "campaign": run.campaign,
        **{key: run.params.get(key, "") for key in ("language", "target")},
        "strategy": run.params.get("search.strategy", ""),
        "state": stored.state.lower(),
        "tried": len(population),
        "incumbent": population.incumbent(),
        "kernels": [row(trial, population) for trial in population.latest(most)],
    }
    text = stored.store.text(run, conclusion.RESULT)
    return told | ({"confirmation": confirmation(CampaignResult.model_validate_json(text))} if text else {})


def kernel(settings: Settings, campaign: str, kernel: str) -> Json:
    """Tell all of one kernel, with its source."""
    stored = find(settings, campaign)
    if kernel not in stored.population:
        raise SetupError(absent(campaign, kernel, stored.population))
    trial = stored.population.get(kernel)
    told = {"problem": stored.run.params.get("problem", ""), **row(trial, stored.population)}
    hypothesis = trial.kernel.experiment.description if trial.kernel.experiment else ""
    times = [one.model_dump(exclude={"samples_us"}) for one in trial.evaluation.timings]
    return {**told, "hypothesis": hypothesis, "cases": results.rounded(times), "source": trial.kernel.source}


def find(settings: Settings, campaign: str) -> StoredCampaign:
    """Return a recorded campaign, by default the one that was started last. Raises SetupError if there is none."""
    uri = load(settings.params_file, settings.overrides).tracking.uri
    if (stored := found.find(uri, campaign or None)) is None:
        raise SetupError(f"there is no campaign {campaign!r}" if campaign else "no campaign is recorded yet")
    return stored


def absent(campaign: str, kernel: str, population: Population) -> str:
    """Return the sentence for a kernel that a campaign does not have."""
    latest = ", ".join(trial.kernel.name for trial in population.latest(5)) or "none"
    return f"campaign {campaign} has no kernel {kernel!r}; its latest are {latest}"


def row(trial: Trial, population: Population) -> dict[str, Any]:
    """Tell of a kernel in a few fields, without what is empty."""
    one, evaluation = trial.kernel, trial.evaluation
    rival = population.entry(one.name).rival if one.name in population else evaluation.baseline
    told = {
        "kernel": one.name,
        "base": one.base,
        "title": one.title,
        "verdict": evaluation.verdict.value,
        "reason": evaluation.reason,
        "geomean_us": results.rounded(evaluation.geomean_us),
        "predicted_us": results.rounded(evaluation.predicted_us),
        "over_reference": _speedup(evaluation.speedup_over(REFERENCE)),
        "over_base": _speedup(over_base(trial)),
        "tested_against": rival if rival != REFERENCE else "",
    }
    return {key: value for key, value in told.items() if value}


def confirmation(result: CampaignResult) -> Json:
    """Tell what a confirmation came to, without what it tells of held-out cases."""
    told = result.model_dump(mode="json", include={*CONFIRMED})
    why = withheld.reason(told["verdict"], result.why)
    standing = {"became_standing_champion": result.standing.replaced} if result.standing else {}
    return {**told, "why": why, **standing}


def _speedup(speedup: Speedup | None) -> Json | None:
    return results.of_speedup(speedup).model_dump(mode="json", include=SPEEDUP) if speedup else None
