"""Timed rows by source, case, process and block, and the times computed from them."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kernel_scientist.evaluate.timing.statistics import Blocks
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.workers.client import Row

LEAST_SHARE = 0.1
"""Least share of a row's host wall time that remains after the overhead is subtracted."""
EVENT_SLACK_NS = 1000
"""Nanoseconds by which host time may exceed the GPU's event time, beyond the trusted range, without a correction."""


@dataclass
class Samples:
    """Timed rows of calls. `process` numbers the stages: each stage has a fresh worker per source."""

    rows: dict[tuple[str, str], list[list[list[Row]]]] = field(
        default_factory=dict[tuple[str, str], list[list[list[Row]]]]
    )
    """Rows by (source, case), nested as processes, blocks, rows."""

    def add(self, name: str, case: str, process: int, block: int, row: Row) -> None:
        """Record one timed row."""
        processes = self.rows.setdefault((name, case), [])
        while len(processes) <= process:
            processes.append([])
        while len(processes[process]) <= block:
            processes[process].append([])
        processes[process][block].append(row)

    @property
    def stages(self) -> int:
        """How many sets of workers were timed."""
        return max((len(processes) for processes in self.rows.values()), default=0)

    @property
    def cases(self) -> list[str]:
        """The cases' names in order."""
        return list(dict.fromkeys(case for _, case in self.rows))

    def rows_of(self, name: str, case: str) -> list[Row]:
        """Return a source's rows on one case."""
        return [row for process in self.rows[name, case] for block in process for row in block]

    def times_us(self, name: str, case: str) -> list[float]:
        """Return microseconds per call, one number per row."""
        clock = self._clock(case)
        return [clock.call_us(row) for row in self.rows_of(name, case)]

    def blocks_us(self, name: str, case: str, stages: int | None = None) -> Blocks:
        """Return microseconds per call of each block's quickest row, by process (interruptions only add time)."""
        clock = self._clock(case)
        processes = self.rows[name, case][:stages]
        return [[min(map(clock.call_us, block)) for block in process] for process in processes]

    def table(self, name: str, stages: int | None = None) -> list[Blocks]:
        """Return the blocks of all cases, in order."""
        return [self.blocks_us(name, case, stages) for case in self.cases]

    def trusted(self, candidate: str) -> str:
        """Return the trusted source: the reference, else the last one except the candidate."""
        names = list(dict.fromkeys(name for name, _ in self.rows))
        return REFERENCE if REFERENCE in names else next((n for n in reversed(names) if n != candidate), candidate)

    def _clock(self, case: str) -> "_Clock":
        return _Clock.of(self.rows_of(self.trusted(""), case))

    @staticmethod
    def joined(parts: Sequence["Samples"]) -> "Samples":
        """Return the processes of several runs, one after the other."""
        total = Samples()
        for part in parts:
            for key, processes in part.rows.items():
                total.rows.setdefault(key, []).extend(processes)
        return total


class _Clock(NamedTuple):
    """Conversion of a row's clock readings to time per call, on one case."""

    overhead_ns: float
    """Overhead in the host wall time of a row on a CPU: two signals between processes."""
    usual_excess_ns: float
    """Largest excess of host time over event time in an honest row on a GPU."""
    by_events: bool

    @staticmethod
    def of(rows: Sequence[Row]) -> "_Clock":
        """Return the conversion calibrated with the rows of a trusted worker."""
        overhead = statistics.median(row.wall_ns - row.reading.ns for row in rows)
        excess = [row.reading.ns - row.reading.event_ns for row in rows if row.reading.event_ns]
        if not excess:
            return _Clock(max(overhead, 0), 0, False)
        low, _, high = statistics.quantiles(excess, n=4) if len(excess) > 1 else (excess[0],) * 3
        return _Clock(0, high + 1.5 * (high - low) + EVENT_SLACK_NS, True)  # Tukey's fence

    def call_us(self, row: Row) -> float:
        """Return microseconds per call: on a CPU host wall time minus overhead, on a GPU the time between events.

        Work on a stream without events may end after the last event, but before the device is idle. Therefore the host
        time beyond the events is added if it is larger than usual.
        """
        reading = row.reading
        if not self.by_events:
            ns = max(row.wall_ns - self.overhead_ns, LEAST_SHARE * row.wall_ns)
        elif not reading.event_ns:
            ns = reading.ns
        else:
            excess = reading.ns - reading.event_ns
            ns = reading.event_ns + (excess if excess > self.usual_excess_ns else 0)
        return ns / row.calls / 1000
