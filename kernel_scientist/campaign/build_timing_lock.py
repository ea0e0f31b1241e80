"""The lock that keeps builds away from a timing on the same CPU."""

import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

from kernel_scientist.records.errors import DeviceBusyError
from kernel_scientist.sandbox import device_queue


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
