"""Which campaign is resumed. It has the parameters of the call: which of them cannot change, and which have changed."""

from kernel_scientist.hardware.addresses import Address
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Params
from kernel_scientist.tracking import access, local_store, owner
from kernel_scientist.tracking.campaign_params import texts
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore
from kernel_scientist.tracking.subject import Subject

FIXED = ("compat", "profile", "kernelbot.leaderboard", "kernelbot.gpu")
"""Parameters that a resumed campaign shares with its start, besides problem, language and target: they decide what is
timed."""
WITHOUT_EFFECT = ("problem", "target", "search.from", "tracking.")
"""Beginnings of parameters whose change means nothing: they are checked, or they are about the start."""
EMPTY = "nothing"


def find(
    params: Params, problem: Problem, address: Address, resume: bool | str, store: MlflowStore | None
) -> CampaignRun | None:
    """Return the campaign that is to be resumed: the latest (True) or a named one; None: there is none.

    `store`: that of `opened` or `existing`. Raises SetupError when a campaign cannot be resumed.
    """
    wanted = None if resume is True else resume or None
    if store is None:
        if wanted is not None:
            raise SetupError(f"no campaign {wanted!r}: {_no_store(params)}")
        return None
    run = store.recorded(wanted, subject(params, problem, address), params.tracking.suite)
    if run is not None:
        changes(run, params, problem)
    return run


def existing(params: Params, problem: Problem, address: Address) -> MlflowStore | None:
    """Open the MLflow experiment of a problem on a target; None if there is no store, which is not made for this."""
    file = local_store.database(environment.tracking_uri(params.tracking.uri))
    return None if file is not None and not file.exists() else opened(params, problem, address)


def opened(params: Params, problem: Problem, address: Address) -> MlflowStore:
    """Open the MLflow experiment of a problem on a target."""
    return access.open_store(params.tracking.uri, params.tracking.experiment or f"{problem.name}-{address.name}")


def subject(params: Params, problem: Problem, address: Address) -> Subject:
    """Return what a campaign with these parameters is about."""
    return Subject(problem.name, params.language, address.name)


def nothing(params: Params, problem: Problem, address: Address, store: MlflowStore | None) -> str:
    """Return the sentence about a call to resume the latest campaign where there is none."""
    if store is None:
        return f"there is no campaign to resume: {_no_store(params)}; a new one starts"
    where = f"in MLflow experiment {store.experiment} at {store.uri}"
    other = store.latest(subject=subject(params, problem, address))
    if other is None:
        return f"there is no campaign to resume {where}: a new one starts"
    return (
        f"there is no campaign of {environment.owner()} to resume {where}: a new one starts; the latest is "
        f"{other.campaign} of {owner.words(other.tags)} (`--campaign {other.campaign}`, for a deployment "
        f"resume={other.campaign}, continues it)"
    )


def changes(run: CampaignRun, params: Params, problem: Problem) -> str:
    """Return the parameters that differ from those with which a campaign last ran: `search.generations 2 -> 4`.

    Raises SetupError when one differs that cannot change, or the problem's files do.
    """
    now = texts(params.model_dump(by_alias=True))
    values, last = ({k: v[:500] for k, v in one.items()} for one in (now, run.params))  # older campaigns have no more
    differ = {key: (last[key], value) for key, value in values.items() if last.get(key, value) != value}
    for key, (before, value) in differ.items():
        if key in FIXED:
            raise SetupError(
                f"this call has {key}={value or EMPTY}, and campaign {run.campaign} was started with {key}={before}, "
                f"which cannot change: resume it with --set {key}={before}, or start a new campaign without --resume"
            )
    if (digest := run.tags.get("problem_digest", "")) != problem.digest:
        raise SetupError(
            f"campaign {run.campaign} was run on another version of problem {problem.name}: the digest of its files "
            f"was {digest[:12] or EMPTY} and is {problem.digest[:12]}; bring the files back, or start a new campaign "
            "without --resume"
        )
    told = (
        f"{key} {b or EMPTY} -> {n or EMPTY}" for key, (b, n) in differ.items() if not key.startswith(WITHOUT_EFFECT)
    )
    return ", ".join(told)


def _no_store(params: Params) -> str:
    return f"there is no MLflow store {local_store.database(environment.tracking_uri(params.tracking.uri))} yet"
