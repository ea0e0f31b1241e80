"""What the sides of a control may differ in: how kernels are searched for, and nothing that judges or limits them."""

from collections.abc import Sequence

from kernel_scientist.campaign import agent_command
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import PLAYBOOK, WRITER, Params
from kernel_scientist.tracking.campaign_params import texts

FREE = ("search.", "llm.", "repair.", "tuning.", "knowledge.")
"""Beginnings of the parameters in which the sides may differ."""
LIMITS = ("budget.", "search.generations", "search.experiments")
"""Beginnings of the parameters that limit a campaign."""
OWN = ("problem", "search.seed", "search.from", "tracking.suite", "llm.replies")
"""Parameters that a control sets itself."""


def settled(params: Params) -> Params:
    """Return parameters without those that a control sets itself."""
    plain, search, llm = Params(), params.search, params.llm
    return params.model_copy(
        update={
            "problem": "",
            "search": search.model_copy(update={"seed": plain.search.seed, "from_": "seeds"}),
            "llm": llm.model_copy(update={"replies": plain.llm.replies}),
            "tracking": params.tracking.model_copy(update={"suite": ""}),
        }
    )


def require(first: Params, second: Params, overrides: Sequence[str]) -> None:
    """Raise SetupError for sides that cannot be compared at equal budget. `overrides`: all of the call."""
    if own := next((key for one in overrides if (key := one.partition("=")[0].strip()) in OWN), None):
        raise SetupError(f"a control sets {own} itself: leave it out")
    for params in (first, second):
        if params.search.strategy == "agent":
            raise SetupError("a control cannot equal the budgets of search.strategy=agent: its tokens are unknown")
    one, other = (texts(settled(params).model_dump(by_alias=True)) for params in (first, second))
    differ = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
    if not differ:
        raise SetupError("the two sides have the same parameters: name what differs by --first and --second")
    if limit := next((key for key in differ if key.startswith(LIMITS)), None):
        raise SetupError(
            f"the sides differ in {limit} ({one.get(limit)} and {other.get(limit)}), which limits a campaign: a "
            "control compares at equal budget, so set it for both by --set"
        )
    if judge := next((key for key in differ if not key.startswith(FREE)), None):
        raise SetupError(
            f"the sides differ in {judge}: they may differ in how kernels are searched for "
            f"({', '.join(part.rstrip('.') for part in FREE)}), not in what is searched for, where, or how it is judged"
        )
    if first.budget.tokens is None and (role := _by_model(first) or _by_model(second)):
        raise SetupError(f"llm.{role} is a model: limit both sides' tokens by --set budget.tokens=N")


def _by_model(params: Params) -> str | None:
    """Return a role that calls a model; None if none does."""
    found = ((name, params.llm.role(name)) for name in agent_command.roles(params))
    return next(
        (
            name
            for name, role in found
            if any(model.model not in (PLAYBOOK, WRITER) for model in (*role.models, *role.fallbacks))
        ),
        None,
    )
