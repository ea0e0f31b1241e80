"""A campaign is resumed with the parameters of the call: which of them cannot change, and which have changed."""

from kernel_scientist.hardware.targets import Target
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Params
from kernel_scientist.tracking.mlflow_store import CampaignRun
from kernel_scientist.tracking.run_content import flat

FIXED = ("compat", "profile", "kernelbot.leaderboard", "kernelbot.gpu")
"""Parameters that a resumed campaign shares with its start, besides problem, language and target: they decide what is
timed."""
WITHOUT_EFFECT = ("problem", "target", "search.from", "tracking.")
"""Beginnings of parameters whose change means nothing: they are checked, or they are about the start."""
EMPTY = "nothing"


def changes(run: CampaignRun, params: Params, problem: Problem, target: Target) -> str:
    """Return the parameters that differ from those with which a campaign was started: `search.generations 2 -> 4`.

    Raises SetupError when one differs that cannot change.
    """
    subject = f"{problem.slug}-{target.name}"
    if not run.campaign.startswith(f"{subject}-"):
        raise SetupError(f"campaign {run.campaign} is of another problem or target than {subject}: neither can change")
    values = {key: str(value)[:500] for key, value in flat(params.model_dump(by_alias=True)).items()}
    differ = {key: (run.params[key], value) for key, value in values.items() if run.params.get(key, value) != value}
    for key, (before, _) in differ.items():
        if key in FIXED:
            raise SetupError(
                f"campaign {run.campaign} was started with {key}={before}, which cannot change: resume it with "
                f"--set {key}={before}, or start a new campaign without --resume"
            )
    told = (
        f"{key} {b or EMPTY} -> {n or EMPTY}" for key, (b, n) in differ.items() if not key.startswith(WITHOUT_EFFECT)
    )
    return ", ".join(told)
