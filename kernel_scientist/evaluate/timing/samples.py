"""What was timed: calls by contestant, case, process and block; what of them was hidden; what a ratio may rest on.

A worker's clock can be forged, the verifier's cannot, and beside every call something passes there that is nobody's
fault. What is more than usual is charged; and against what is usual, the shorter a call, the less a gain counts.
"""

import enum
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kernel_scientist.evaluate.timing.statistics import ratio
from kernel_scientist.records.evaluation import geomean
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.workers.call import Call

FREE_NS, FREE_CALL = 5000, 0.02
"""What may pass outside a worker's clock before it is charged, beyond what is usual, and as a share of the call."""
FREE_EVENTS_NS = 1000
"""The same of what its clock shows beyond a GPU's events: both are read beside each other in native code."""


class By(enum.Enum):
    """What a call counts as."""

    CALL = enum.auto()
    """The call, by its worker's clock, and what was charged."""
    CREDIT = enum.auto()
    """The root of the sum of squares of that and of what usually passes beside a call. So what is much shorter than
    that gains nothing by being shorter still, which nobody could vouch for, and what is much longer counts as what it
    takes."""
    ALL_SEEN = enum.auto()
    """All that passed by the verifier's clock, from request to answer. No worker can forge it, though one that never
    sleeps shortens what passes beside its call."""


@dataclass
class Samples:
    """Timed calls by contestant and case; then by process and block. A process is a look's set of workers."""

    calls: dict[tuple[str, str], list[list[list[Call]]]] = field(
        default_factory=dict[tuple[str, str], list[list[list[Call]]]]
    )
    beside_ns: dict[str, float] = field(default_factory=dict[str, float])
    """By case, what usually passes beside a call of a contestant whose clock is believed; see `charge`."""

    def add(self, name: str, case: str, process: int, block: int, call: Call) -> None:
        """Record one timed call."""
        processes = self.calls.setdefault((name, case), [])
        while len(processes) <= process:
            processes.append([])
        while len(processes[process]) <= block:
            processes[process].append([])
        processes[process][block].append(call)

    def believed(self, candidate: str) -> str:
        """Return whose clock is believed: the reference's, else the last contestant's."""
        names = list(dict.fromkeys(name for name, _ in self.calls))
        return REFERENCE if REFERENCE in names else next((n for n in reversed(names) if n != candidate), candidate)

    def charge(self, candidate: str) -> None:
        """Charge every call with what was hidden from its worker's clock, if it is more than can be chance.

        What is usual is told by a contestant whose own clock is believed. All contestants are charged alike, and of two
        calls the quicker counts: honest ones lose no more than others.

        What is no more than usual cannot be charged: a worker in another's hands may have done its work there instead.
        How much that is, on a CPU, is kept for `blocks_of`; a GPU's calls are told by its events.
        """
        for case in self.case_names():
            believed = self.calls_of(self.believed(candidate), case)
            if not any(call.swept or reading.event_ns for call in believed for reading in call.readings):
                self.beside_ns[case] = statistics.median(c.before_ns + c.wall_ns - c.measured_ns for c in believed)
            usual = [_Usual.of(row) for row in zip(*map(_beside_ns, believed), strict=True)]
            joined = _Usual.of([_after_events_ns(c) for c in believed])
            for (_, of_case), processes in self.calls.items():
                for block in (b for p in processes for b in p) if of_case == case else ():
                    block[:] = [
                        replace(c, hidden_ns=max(_hidden_ns(c, usual), _beyond_events_ns(c, joined))) for c in block
                    ]

    def owing(self, name: str) -> "Samples":
        """Return the same with all that usually passes beside a call charged to one contestant's calls."""
        out = Samples({**self.calls}, self.beside_ns)
        for (who, case), table in self.calls.items():
            owed = int(self.beside_ns.get(case, 0.0))
            if who == name:
                out.calls[who, case] = [[[replace(c, owed_ns=owed) for c in block] for block in p] for p in table]
        return out

    @property
    def grounds(self) -> tuple[By, ...]:
        """By what a kernel must be the faster one."""
        return (By.CREDIT, By.ALL_SEEN) if self.beside_ns else (By.CREDIT,)

    def seen(self, name: str, against: str, confidence: float) -> tuple[float, float] | None:
        """Return the interval of how many times faster `name` was by all that the verifier saw; None on a GPU."""
        if By.ALL_SEEN not in self.grounds:
            return None
        return ratio(*(self.blocks_of(who, by=By.ALL_SEEN) for who in (name, against)), confidence=confidence)[1]

    @property
    def looks(self) -> int:
        """How many sets of workers were timed."""
        return max((len(processes) for processes in self.calls.values()), default=0)

    def of(self, name: str, case: str) -> list[float]:
        """Return a contestant's microseconds on one case."""
        return [c.ns / 1000 for c in self.calls_of(name, case)]

    def calls_of(self, name: str, case: str) -> list[Call]:
        """Return a contestant's calls on one case."""
        return [c for process in self.calls[name, case] for block in process for c in block]

    def blocks_of(self, name: str, case: str | None = None, by: By = By.CREDIT) -> list[list[float]]:
        """Return by process and block the geometric mean over cases of the quickest call, in us.

        The quickest: an interruption can only add time.
        """
        tables = {c: table for (who, c), table in self.calls.items() if who == name and case in (None, c)}

        def counted_us(process: int, block: int) -> float:
            return geomean(
                [min(self._counted_ns(call, c, by) for call in t[process][block]) / 1000 for c, t in tables.items()]
            )

        shape = next(iter(tables.values()))
        return [[counted_us(p, b) for b in range(len(blocks))] for p, blocks in enumerate(shape)]

    def _counted_ns(self, call: Call, case: str, by: By) -> float:
        match by:
            case By.CALL:
                return call.ns
            case By.ALL_SEEN:
                return call.seen_ns
            case By.CREDIT:
                return math.hypot(call.ns, self.beside_ns.get(case, 0.0))

    def restless(self, name: str) -> bool:
        """Whether something usually worked in a contestant's worker beside its calls."""
        calls = [c for (who, _), table in self.calls.items() if who == name for p in table for b in p for c in b]
        return sum(c.late_ns > 0 for c in calls) > len(calls) / 4

    @staticmethod
    def joined(parts: Sequence["Samples"]) -> "Samples":
        """Return the processes of several runs, one after the other."""
        out = Samples()
        for part in parts:
            for key, processes in part.calls.items():
                out.calls.setdefault(key, []).extend(processes)
            for case, beside in part.beside_ns.items():
                out.beside_ns[case] = max(beside, out.beside_ns.get(case, 0.0))
        return out

    def case_names(self) -> list[str]:
        """Return the cases' names in order."""
        return list(dict.fromkeys(case for _, case in self.calls))


class _Usual(NamedTuple):
    """What usually passes beside a call, and how much may be chance."""

    middle: float
    most: float

    @staticmethod
    def of(values: Sequence[float]) -> "_Usual":
        """From quartiles: one and a half times their distance above the upper one is chance (Tukey's fence)."""
        low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
        return _Usual(middle, high + 1.5 * (high - low))


def _beside_ns(call: Call) -> tuple[int, int, int, int, int]:
    """Return what the verifier's clock saw before, around and after a call, and what was worked before it."""
    return call.before_ns, call.wall_ns - call.measured_ns, call.after_ns, call.idle_ns, call.ready_ns


def _hidden_ns(call: Call, usual: Sequence[_Usual]) -> int:
    free = (FREE_NS, FREE_NS + FREE_CALL * call.measured_ns, FREE_NS, FREE_NS, FREE_NS)
    seen = zip(_beside_ns(call), usual, free, strict=True)
    return int(sum(passed - u.middle for passed, u, most in seen if passed > u.most + most))


def _after_events_ns(call: Call) -> int:
    """Return what the worker's own clock saw of a GPU beyond its events: the end of what ran on no stream of theirs."""
    return sum(reading.ns - reading.event_ns for reading in call.readings if reading.event_ns)


def _beyond_events_ns(call: Call, usual: _Usual) -> int:
    passed = _after_events_ns(call)
    return int(passed - usual.middle) if passed > usual.most + FREE_EVENTS_NS else 0
