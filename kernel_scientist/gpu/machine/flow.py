"""The ways through a listing, and a data-flow along them of what happened lately at which place.

Runs in workers: standard library only.
"""

import heapq
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from kernel_scientist.gpu.machine.listing import Listing

Facts = dict[Hashable, tuple[int, int]]
"""How long ago something happened at a place at the latest, on any way, and the instruction that did it."""
State = tuple[Facts, ...]
_ENDS = re.compile(r"s_(?:branch|cbranch\w*|endpgm\w*|setpc_b64|rfe\w*|code_end)$")
_NO_NEXT = re.compile(r"s_(?:branch|endpgm\w*|setpc_b64|rfe\w*|code_end)$")


@dataclass(frozen=True)
class Block:
    """Instructions that are executed one after the other."""

    first: int
    end: int
    following: tuple[int, ...]
    """First instructions of the blocks that may come next."""


class Recent:
    """What happened lately, on one way."""

    def __init__(self, facts: Facts) -> None:
        self._clock = 0
        self._born = {place: (-age, cause) for place, (age, cause) in facts.items()}

    def put(self, place: Hashable, cause: int) -> None:
        """Say that it happens now."""
        self._born[place] = (self._clock, cause)

    def drop(self, place: Hashable) -> None:
        """Forget a place."""
        self._born.pop(place, None)

    def advance(self, steps: int = 1) -> None:
        """Let time pass."""
        self._clock += steps

    def forget(self, age: int) -> None:
        """Forget what happened that long ago or longer."""
        oldest = self._clock - age
        for place in [place for place, (born, _) in self._born.items() if born <= oldest]:
            del self._born[place]

    def find(self, place: Hashable) -> tuple[int, int] | None:
        """Return how long ago it happened there, and the instruction; None if it did not."""
        found = self._born.get(place)
        return None if found is None else (self._clock - found[0], found[1])

    def __bool__(self) -> bool:
        return bool(self._born)

    def __iter__(self) -> Iterator[tuple[Hashable, int, int]]:
        """Return places, ages and instructions."""
        return iter([(place, self._clock - born, cause) for place, (born, cause) in self._born.items()])

    def facts(self, most: int) -> Facts:
        """Return what happened less than `most` ago."""
        return {place: (age, cause) for place, age, cause in self if age < most}


def blocks(listing: Listing) -> dict[int, Block]:
    """Return the blocks by their first instruction, in order."""
    count = len(listing.statements)
    if not count:
        return {}
    starts = {0, *(place for place in listing.labels.values() if place < count)}
    ends = [n for n, statement in enumerate(listing.statements) if _ENDS.match(statement.mnemonic)]
    starts.update(n + 1 for n in ends if n + 1 < count)
    ordered = sorted(starts)
    found: dict[int, Block] = {}
    for first, end in zip(ordered, [*ordered[1:], count], strict=True):
        last = listing.statements[end - 1]
        following = list[int]()
        if end < count and not _NO_NEXT.match(last.mnemonic):
            following.append(end)
        if last.mnemonic.startswith(("s_branch", "s_cbranch")):
            target = listing.labels.get(last.operands.strip().strip('"'), count)
            following += [target] if target < count else []
        found[first] = Block(first, end, tuple(following))
    return found


def entries(listing: Listing) -> list[int]:
    """Return the first instructions of the kernels."""
    places = (listing.labels[name] for name in listing.kernels)
    return [place for place in places if place < len(listing.statements)]


def solve(
    found: dict[int, Block], entries: Sequence[int], empty: State, through: Callable[[Block, State], State]
) -> dict[int, State]:
    """Return the state before each block: what may have happened lately on any way to it.

    through: returns the state after a block. Code that no way reaches from the entries, such as a function that is
    called, starts with the empty state.
    """
    before: dict[int, State] = {}
    for entry in (*entries, *found):
        if entry in before:
            continue
        before[entry] = tuple(dict(facts) for facts in empty)
        waiting, queued = [entry], {entry}
        while waiting:
            first = heapq.heappop(waiting)
            queued.discard(first)
            after = through(found[first], before[first])
            for target in found[first].following:
                if _merge(before, target, after) and target not in queued:
                    heapq.heappush(waiting, target)
                    queued.add(target)
    return before


def _merge(before: dict[int, State], target: int, after: State) -> bool:
    """Add the state after a block to that before another one; return whether that changed it."""
    if target not in before:
        before[target] = tuple(dict(facts) for facts in after)
        return True
    changed = False
    for known, added in zip(before[target], after, strict=True):
        for place, fact in added.items():
            if place not in known or fact < known[place]:
                known[place] = fact
                changed = True
    return changed
