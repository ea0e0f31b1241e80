"""The order of kernels by a chain of measured pairs.

Speedups over the reference are of different runs: under load they differ by factors, although the kernels do not. Each
kernel was timed in one run with the incumbent of that moment, so its estimate is the incumbent's estimate times the
ratio of that run; the chain begins with a kernel's ratio to the reference. Errors of the steps add up, so the product
orders kernels and states no speed. It is kept as a binary logarithm. On a model target the estimate is the predicted
share of the roofline's speed.
"""

import bisect
import math
from collections import defaultdict
from collections.abc import Iterator

from kernel_scientist.population.entry import Entry, order
from kernel_scientist.records.kernel import REFERENCE

Key = tuple[float, tuple[int, str]]


class Ranking:
    """Kernels with a time, best first. They may be added in any order: one whose rival is not there yet has its ratio
    to the reference as a provisional estimate, until the rival comes."""

    def __init__(self) -> None:
        self._sorted: list[Key] = []
        self._estimates: dict[str, float] = {}
        self._waiting: dict[str, list[Entry]] = defaultdict(list)
        """Kernels whose estimate is provisional, by the rival that they wait for."""
        self._provisional: set[str] = set()

    def estimate(self, name: str) -> float:
        """Return a kernel's estimate; minus infinity if it has no time."""
        return self._estimates.get(name, -math.inf)

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
            self._place(one)
            changed.append(one.name)
            if one.name not in self._provisional:
                waiting += reversed(self._waiting.pop(one.name, []))
        return iter(changed)

    def _place(self, entry: Entry) -> None:
        name = entry.name
        if name in self._estimates:
            del self._sorted[bisect.bisect_left(self._sorted, self.key(name))]
        chained = not entry.by_model and entry.rival not in ("", REFERENCE)
        if chained and (entry.rival not in self._estimates or entry.rival in self._provisional):
            self._waiting[entry.rival].append(entry)
            self._provisional.add(name)
            self._estimates[name] = math.log2(entry.score)
        else:
            self._provisional.discard(name)
            step = self._estimates[entry.rival] + math.log2(entry.over_rival) if chained else math.log2(entry.score)
            self._estimates[name] = step
        bisect.insort(self._sorted, self.key(name))
