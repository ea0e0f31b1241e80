"""What a verification has found so far: how much was compared, what differs, what could not be checked."""

import math
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, cast

from pydantic import BaseModel

from kernel_scientist.records import environment
from kernel_scientist.records.evidence import Difference, Unchecked

TOLERANCE = 1e-6
"""Relative difference of two figures that may come from the order in which another machine adds."""
MOST_SHOWN = 200
"""Most characters of a statement that are shown."""
OTHER_VERSION = "another version of the evaluator computed what is stated"
ABSENT = object()


@dataclass
class Findings:
    """The findings of one verification."""

    checked: int = 0
    differences: list[Difference] = field(default_factory=list[Difference])
    unchecked: list[Unchecked] = field(default_factory=list[Unchecked])

    def same(self, what: str, stated: Any, recomputed: Any) -> None:
        """Compare two values of JSON, or records: every number, text and truth value in them is one statement."""
        self._same(what, _plain(stated), _plain(recomputed))

    def wrong(self, what: str, stated: Any, recomputed: Any) -> None:
        """Note a statement that differs."""
        self.checked += 1
        self.differences.append(Difference(what=what, stated=_shown(stated), recomputed=_shown(recomputed)))

    def open(self, what: str, why: str) -> None:
        """Note what cannot be checked, once."""
        found = Unchecked(what=what, why=why)
        self.unchecked += [found] if found not in self.unchecked else []

    @contextmanager
    def computed_by(self, evaluator: str) -> Generator[None]:
        """Say of each difference found meanwhile if another version of the evaluator computed what is stated.

        `evaluator`: the digest of the one that did.
        """
        before = len(self.differences)
        yield
        if evaluator != environment.evaluator_digest():
            for number, found in enumerate(self.differences[before:], before):
                recomputed = f"{found.recomputed} ({OTHER_VERSION})"
                self.differences[number] = found.model_copy(update={"recomputed": recomputed})

    def _same(self, what: str, stated: Any, recomputed: Any) -> None:
        if isinstance(stated, dict) and isinstance(recomputed, dict):
            ours, theirs = cast(dict[str, Any], stated), cast(dict[str, Any], recomputed)
            for key in dict.fromkeys((*ours, *theirs)):
                self._same(f"{what}: {key}", ours.get(key, ABSENT), theirs.get(key, ABSENT))
        elif isinstance(stated, list) and isinstance(recomputed, list):
            pairs = zip_longest(cast(list[Any], stated), cast(list[Any], recomputed), fillvalue=ABSENT)
            for number, (one, other) in enumerate(pairs):
                self._same(f"{what}[{_name(number, one, other)}]", one, other)
        elif _equal(stated, recomputed):
            self.checked += 1
        else:
            self.wrong(what, stated, recomputed)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast(dict[str, Any], value).items()}
    return [_plain(item) for item in cast(list[Any], value)] if isinstance(value, (list, tuple)) else value


def _equal(one: Any, other: Any) -> bool:
    numbers = [value for value in (one, other) if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if len(numbers) < 2 or all(isinstance(number, int) for number in numbers):
        return one is other or one == other
    try:
        return math.isclose(*numbers, rel_tol=TOLERANCE)
    except OverflowError:  # a whole number that no float reaches
        return False


def _name(number: int, *items: Any) -> Any:
    """Return what tells an item of a list from the others: its case or source, else its number."""
    named = (cast(dict[str, Any], item) for item in items if isinstance(item, dict))
    found = (item[key] for item in named for key in ("case", "against", "kernel", "name") if item.get(key))
    return next((name for name in found if isinstance(name, str)), number)


def _shown(value: Any) -> str:
    text = "nothing" if value is ABSENT or value in (None, "") else str(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} ..."
