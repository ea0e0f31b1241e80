"""What an agent must not learn: the held-out cases, on which a champion is confirmed."""

from collections.abc import Set
from typing import Any, cast

from kernel_scientist.problems.problem import Problem

HIDDEN = "held_out"
"""Beginning of the names of fields that tell something of held-out cases, and their use in a list of cases."""
NOTHING_DECIDED = "nothing was decided; try again"
_LATER = "on the held-out cases"
_UNMEASURED = "right ("


def names(problem: Problem) -> frozenset[str]:
    """Return the names of a problem's held-out cases, of all its profiles, except those that are public as well."""
    profiles = problem.profiles.values()
    public = {case.name for one in profiles for case in (*one.tests, *one.benchmarks)}
    return frozenset({case.name for one in profiles for case in one.held_out} - public)


def without(value: Any, hidden: Set[str]) -> Any:
    """Return a JSON value without fields and rows about held-out cases; `hidden` are their names.

    Texts stay as they are. If names were removed from them, a kernel's source could be used to guess the names.
    """
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value).items()
        return {key: without(one, hidden) for key, one in fields if not key.startswith(HIDDEN)}
    if isinstance(value, (list, tuple)):
        return [without(one, hidden) for one in cast(list[Any], value) if not _is_hidden(one, hidden)]
    return value


def _is_hidden(row: Any, hidden: Set[str]) -> bool:
    """Whether a row of a list is about a held-out case."""
    if not isinstance(row, dict):
        return False
    told = cast(dict[str, Any], row)
    return told.get("use") == HIDDEN or ("case" in told and str(told["case"]) in hidden)


def reason(verdict: str | None, why: str) -> str:
    """Return why a champion was confirmed or not, without what a failure or a timing tells of the held-out cases."""
    if verdict == "infrastructure":
        return NOTHING_DECIDED
    if verdict == "compiled":
        return "nothing here executes the kernel"
    if verdict not in (None, "ok"):
        return f"{verdict} on a case of the confirmation; `check` tells more of the public cases"
    if why.startswith(_UNMEASURED):  # it goes on with what was executed of all cases
        return "right on every case; its time is predicted, nothing was measured"
    before, found, _ = why.partition(_LATER)
    return before + found
