"""Checks before a campaign whose models are not to know the timed sizes (`search.hide_shapes`)."""

from kernel_scientist.hardware.addresses import Address
from kernel_scientist.problems import stated_sizes
from kernel_scientist.problems.problem import Problem, Profile
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Params


def require(params: Params, problem: Problem, address: Address) -> None:
    """Raise SetupError if the timed sizes are to be hidden and something would tell them."""
    search = params.search
    if not search.hide_shapes:
        return
    if search.submitted:
        raise SetupError(
            "search.hide_shapes: the tools of `kernel-scientist mcp` tell the timed cases, so a campaign whose kernels "
            "its clients write cannot hide them"
        )
    if search.agent and params.harness.sandbox != "auto":
        raise SetupError(
            f"search.hide_shapes: with harness.sandbox={params.harness.sandbox} the agent's command can read the "
            "problem's files; set it to auto"
        )
    profiles = timed(params, problem, address)
    if all(profile.times(case) for profile in profiles for case in profile.tests):
        raise SetupError(f"search.hide_shapes: every checking case of {problem.name} has the sizes of a timed one")
    if stated := stated_sizes.where(problem, profiles, params.language):
        raise SetupError(f"search.hide_shapes: the timed sizes of {problem.name} cannot be hidden, as {stated}")


def require_unstated(params: Params, problem: Problem, address: Address, source: str) -> None:
    """Raise SetupError if the timed sizes are to be hidden and the standing champion's source names a timed case."""
    if not params.search.hide_shapes:
        return
    cases = (case for profile in timed(params, problem, address) for case in profile.benchmarks)
    if any(case.name in source or stated_sizes.states(source, case) for case in cases):
        raise SetupError(
            "search.hide_shapes: the standing champion, with which the campaign would start, names a timed case; set "
            "search.from=seeds"
        )


def timed(params: Params, problem: Problem, address: Address) -> list[Profile]:
    """Return the profiles whose cases may be timed: with `auto` a target other than this CPU may have those of full."""
    chosen = [problem.profile(params.profile)]
    return [*chosen, problem.profile("full")] if params.profile == "auto" and address.name != "cpu" else chosen
