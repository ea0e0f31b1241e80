"""What `optimize` will do: the plan of a new campaign or what is left of a recorded one, and whether it can."""

import logging
from functools import cache
from typing import Any

from kernel_scientist.campaign import agent_command, beginning, hidden_sizes, preflight, resuming
from kernel_scientist.campaign.ledger import Ledger
from kernel_scientist.campaign.plan import Plan
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Params
from kernel_scientist.records.text import number_of
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore

progress = logging.getLogger("kernel_scientist.progress")
UNTIMED = "none: kernels are executed and checked, but only a GPU times them; target=model:mi300x predicts their times"
"""What is said of Triton kernels on a CPU."""


def plan(params: Params, resume: bool | str = False) -> dict[str, Any]:
    """Return the plan of a new campaign, or with `resume` what is left of the latest (True) or a named one.

    Raises SetupError as `optimize` does.
    """
    from kernel_scientist.scientist.llm import costs

    problem, address = preflight.resolve(params)
    agent_command.require(params)
    hidden_sizes.require(params, problem, address)
    models = {name: params.llm.role(name).model for name in agent_command.roles(params)}
    told = agent_command.outlook(params)
    if resume:
        store = resuming.existing(params, problem, address)
        run = resuming.find(params, problem, address, resume, store)
        if store and run:
            changes = resuming.changes(run, params, problem)
            return {**told, **_left(params, problem, store, run), "changed": changes or "nothing", "models": models}
        told |= {"resumes": resuming.nothing(params, problem, address, store)}
    first = beginning.new(params, problem, address, None)
    untimed = params.language == "triton" and address.name == "cpu"
    planned = len(first) + params.search.generations * params.search.experiments
    return told | {
        "problem": problem.name,
        "target": address.name,
        "seeds": list(first.start.seeds),
        "champion": first.start.origin.words if first.start.origin else None,
        "kernels": min(planned, params.budget.kernels),
        "timed_cases": UNTIMED if untimed else [c.name for c in problem.profile(params.profile).benchmarks],
        "models": models,
        "usd": costs.campaign_usd(params, problem, len(first), models),
        "budget_usd": params.budget.usd,
    }


def require(params: Params, resume: bool | str = False) -> tuple[Problem, Address]:
    """Check a call of `optimize` before anything starts; return its problem and target. Raises SetupError.

    A campaign that is to be resumed exists. A model that cannot be called is no mistake if nothing is left to do.
    """
    problem, address = preflight.campaign(params)
    store = resuming.existing(params, problem, address) if resume else None
    run = resuming.find(params, problem, address, resume, store) if resume else None
    try:
        for warning in preflight.models(params):
            _say_once(warning)
    except SetupError:
        if store is None or run is None or _left(params, problem, store, run)["kernels_left"]:
            raise
    return problem, address


@cache
def _say_once(warning: str) -> None:
    """A call is checked more than once: by the command, and by the flow, which others start too."""
    progress.warning("%s", warning)


def _left(params: Params, problem: Problem, store: MlflowStore, run: CampaignRun) -> dict[str, Any]:
    """Return what is done and what is left of a recorded campaign with these parameters."""
    from kernel_scientist.scientist.llm.costs import LlmBudget
    from kernel_scientist.scientist.llm.response_cache import ResponseCache

    population = store.population(run)
    first = beginning.recorded(store, run, problem.seeds(params.language))
    budget = LlmBudget.of(ResponseCache(environment.root() / params.llm.replies), params.budget, run.campaign)
    plan = Plan(params, first, population, Ledger(population), budget, run.elapsed_s)
    over = plan.over()
    usd = params.budget.usd
    return {
        "campaign": run.campaign,
        "started_from": first.start.words,
        "kernels": len(population),
        "kernels_left": 0 if over else max(0, plan.planned - len(population)),
        "minutes_left": round(max(0.0, params.budget.minutes - plan.elapsed_s() / 60), 1),
        "usd_left": None if usd is None else max(0.0, usd - budget.usd),
        "next": f"nothing is left to do: {over}" if over else f"{number_of(plan.planned, 'kernel')} planned",
    }
