"""The order of kernels by all measured ratios, each as far as its interval supports it.

Each kernel was timed in one run with the incumbent of that moment, its base and the reference. Each of these places it:
at the other's place, times the ratio to it. The estimate is the mean of these places by inverse variances; a variance
is that of the ratio plus that of the other's place. Places are relative to the kernel that was timed first: what its
own ratio to the reference leaves open moves all kernels alike, so it is the reference's variance and not its own. Under
load the reference's times differ by factors from run to run, and a precise ratio to the incumbent outweighs it.

Errors of many runs are in an estimate, so it orders kernels and states no speed. On a model target the estimate is the
predicted share of the roofline's speed.
"""

import bisect
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from kernel_scientist.population.entry import Entry, order
from kernel_scientist.records.kernel import REFERENCE

Key = tuple[float, tuple[int, str]]


class SpeedEstimate(NamedTuple):
    """An estimate of a kernel's speed, on a scale of binary logarithms."""

    log: float
    variance: float
    """How far it may be off, squared, relative to the kernel at which the scale begins."""
    of_reference: float
    """Variance of the reference's place on the same scale."""


class Ranking:
    """Kernels with a time, best first. They may be added in any order: until all that one was timed with are there, it
    has its ratio to the reference as a provisional estimate."""

    def __init__(self) -> None:
        self._sorted: list[Key] = []
        self._places: dict[str, SpeedEstimate] = {}
        self._waiting: dict[str, list[Entry]] = defaultdict(list)
        """Kernels whose estimate is provisional, by one that they wait for."""
        self._provisional: set[str] = set()

    def estimate(self, name: str) -> float:
        """Return a kernel's estimate; minus infinity if it has no time."""
        place = self._places.get(name)
        return place.log if place else -math.inf

    def key(self, name: str) -> Key:
        """Return the key by which kernels are sorted: the best one first."""
        return -self.estimate(name), order(name)

    def best(self, most: int | None = None) -> list[str]:
        """Return the names of the best kernels."""
        return [name for _, (_, name) in self._sorted[:most]]

    def add(self, entry: Entry) -> Iterator[str]:
        """Add a kernel with a time; return the kernels whose place has changed, itself first."""
        changed, waiting = list[str](), [entry]
        while waiting:
            one = waiting.pop()
            self._insert(one)
            changed.append(one.name)
            if one.name not in self._provisional:
                waiting += reversed(self._waiting.pop(one.name, []))
        return iter(changed)

    def place(self, entry: Entry) -> SpeedEstimate:
        """Return the place of a kernel with a time by what is here, whether or not it is here itself."""
        reference = entry.over(REFERENCE)
        own = SpeedEstimate(math.log2(entry.score), 0.0, reference.variance if reference else 0.0)
        if not entry.is_relative or self._awaited(entry):
            return own
        scale = self._places[entry.rival].of_reference
        others = {REFERENCE: SpeedEstimate(0.0, scale, scale)}
        found = [(pair, others.get(pair.against) or self._places[pair.against]) for pair in entry.pairs]
        weights = [1 / (pair.variance + other.variance) for pair, other in found]
        total = sum(w * (other.log + pair.log) for w, (pair, other) in zip(weights, found, strict=True))
        return SpeedEstimate(total / sum(weights), 1 / sum(weights), scale)

    def _awaited(self, entry: Entry) -> str | None:
        """Return a kernel that it was timed with and that has no final place yet, if there is one."""
        names = (pair.against for pair in entry.pairs if pair.against != REFERENCE)
        return next((name for name in names if name not in self._places or name in self._provisional), None)

    def _insert(self, entry: Entry) -> None:
        name, awaited = entry.name, self._awaited(entry) if entry.is_relative else None
        if name in self._places:
            del self._sorted[bisect.bisect_left(self._sorted, self.key(name))]
        self._places[name] = self.place(entry)
        if awaited:
            self._waiting[awaited].append(entry)
            self._provisional.add(name)
        else:
            self._provisional.discard(name)
        bisect.insort(self._sorted, self.key(name))
