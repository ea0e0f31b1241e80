"""The bench of a campaign or a single evaluation: one problem's evaluator, and the right to use the device."""

import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from kernel_scientist.campaign.pool_evaluator import PoolEvaluator
from kernel_scientist.hardware.targets import Target
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import DeviceBusyError
from kernel_scientist.records.params import Params
from kernel_scientist.sandbox import device_lock, device_queue
from kernel_scientist.sandbox.device_lock import Turn

if TYPE_CHECKING:
    from kernel_scientist.evaluation.evaluator import Evaluator

POOL_DEVICES = 64
"""Most kernels that a campaign evaluates on a pool at the same time."""


class BuildTimingLock:
    """Keeps builds and a CPU timing apart: any number of builds run, or one timing, which they would disturb.

    A timing that waits goes before builds that have not begun.
    """

    def __init__(self, active: bool = True) -> None:
        """`active`: False lets everything run at once, as on a GPU."""
        self.active = active
        self._changed = threading.Condition()
        self._running, self._waiting = Counter[str](), 0

    def building(self) -> AbstractContextManager[None]:
        """Hold off timings."""
        return self._held("build", lambda: self._running["timing"] + self._waiting)

    @contextmanager
    def timing(self, wait_s: float | None = None) -> Generator[None]:
        """Hold off builds and other timings. Raises DeviceBusyError if they do not end within `wait_s` seconds."""
        with self._changed:
            self._waiting += 1
        with self._held("timing", lambda: self._running.total(), wait_s):
            yield

    @contextmanager
    def _held(self, work: str, hindrances: Callable[[], int], wait_s: float | None = None) -> Generator[None]:
        with self._changed:
            free = self._free(lambda: not (self.active and hindrances()), wait_s)
            if work == "timing":
                self._waiting -= 1
            if not free:
                self._changed.notify_all()
                raise DeviceBusyError(f"builds of this campaign did not end within {wait_s:g} s")
            self._running[work] += 1
        try:
            yield
        finally:
            with self._changed:
                self._running[work] -= 1
                self._changed.notify_all()

    def _free(self, is_free: Callable[[], bool], wait_s: float | None) -> bool:
        """Wait until it is free, at most so long. Builds end by themselves: who waits for the device waits for them."""
        if wait_s is not None:
            return self._changed.wait_for(is_free, wait_s)
        while not self._changed.wait_for(is_free, device_queue.TOUCH_S):
            device_queue.progressed()
        return True


@dataclass(frozen=True)
class Bench:
    """Where kernels of a problem are built and timed: the evaluator, its target, and whose turn it is."""

    params: Params
    problem: Problem
    target: Target
    evaluator: "Evaluator | PoolEvaluator"
    quiet: BuildTimingLock = field(default_factory=BuildTimingLock)
    campaign: str = ""
    """The campaign for which kernels are evaluated, if it is one."""

    @property
    def devices(self) -> int:
        """Most kernels that are timed at the same time. A pool itself limits them to what its workers can take."""
        return POOL_DEVICES if self.target.pool else 1

    @property
    def stopped(self) -> threading.Event:
        """Set once the work is to end."""
        return self.evaluator.stopped

    @property
    def is_here(self) -> bool:
        """Whether kernels are timed on this host."""
        return not (self.target.model or self.target.board or self.target.pool)

    @contextmanager
    def device(self, purpose: str, still_s: float | None = None) -> Generator[None]:
        """Lock the target's device, if it is on this host.

        `purpose`: what for, such as `time k00012`: others read it who wait. Raises DeviceBusyError if others hold it
        and nothing moves for `still_s` seconds, `harness.device_wait_s` by default (`device_lock.device`). A pool is
        waited for until it can take another request.
        """
        if isinstance(self.evaluator, PoolEvaluator):
            self.evaluator.await_place(at_once=still_s == 0)
        if not (self.is_here or self.target.board):
            yield
            return
        limit_s = self.params.harness.device_wait_s if still_s is None else still_s
        quiet = self.quiet.timing(0.0 if still_s == 0 else None)  # builds of this campaign end by themselves
        with device_lock.device(self.target.lock, limit_s, self.evaluator.stopped, purpose, self.campaign), quiet:
            yield

    def turn(self, purpose: str) -> Turn:
        """Return a turn at the target's device, which is not taken yet. `purpose`: as for `device`."""
        return Turn(partial(self.device, purpose))
