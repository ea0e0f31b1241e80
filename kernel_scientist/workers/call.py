"""A timed request to a worker, by everybody's clocks."""

from dataclasses import dataclass

from kernel_scientist.workers.native import Reading


@dataclass(frozen=True)
class Call:
    """One timed request, by the worker's clocks and by the verifier's own."""

    readings: tuple[Reading, ...]
    wall_ns: int
    """From the gate's opening to the bell, by the verifier's clock."""
    before_ns: int
    """From the moment that the worker was roused to the moment that it was ready."""
    after_ns: int
    """From the bell to the answer with the output's digest."""
    cpu_ns: int | None
    """CPU time of the worker's process meanwhile, as the system told the verifier ..."""
    span_ns: int
    """... and the time between its two answers."""

    late_ns: int = 0
    """How long something worked in the worker before it was asked to, or after the call had returned."""

    idle_ns: int = 0
    """CPU time of the worker while it was to wait, too little to tell that it did something."""

    ready_ns: int = 0
    """CPU time of the worker from the request to the moment that it stood before the gate."""

    swept: int = 0
    """On a GPU, what the worker said of the sweep before the call; the same of all workers, if they made it."""

    hidden_ns: int = 0
    """What passed beyond the worker's word by the verifier's clock, and cannot be chance; see `samples`."""

    owed_ns: int = 0
    """What usually passes beside such a call, where the kernel may have used it; see `samples`."""

    @property
    def claimed_ns(self) -> int:
        """What the worker says the calls took."""
        return sum(reading.ns for reading in self.readings)

    @property
    def measured_ns(self) -> int:
        """The calls alone: a GPU's by its events where they say something."""
        return sum(reading.event_ns or reading.ns for reading in self.readings)

    @property
    def ns(self) -> int:
        """What is scored: the calls, what went on around them, and what was or may have been hidden."""
        return self.measured_ns + self.late_ns + self.hidden_ns + self.owed_ns

    @property
    def seen_ns(self) -> int:
        """All that the verifier saw pass and be worked for the call, from the request to the answer."""
        around = self.before_ns + self.wall_ns + self.after_ns + self.late_ns
        return around + self.idle_ns + self.ready_ns + self.owed_ns
