"""Keeps builds and a CPU timing apart: on the device that times kernels, builds would disturb the times."""

import threading
from collections.abc import Generator
from contextlib import contextmanager


class Quiet:
    """Lets any number of builds run, or one timing. A timing that waits goes before builds that have not begun."""

    def __init__(self, active: bool = True) -> None:
        """`active`: False lets everything run at once, as on a GPU."""
        self.active = active
        self._changed = threading.Condition()
        self._builds, self._timings, self._waiting = 0, 0, 0

    @contextmanager
    def building(self) -> Generator[None]:
        """Hold off timings."""
        with self._changed:
            self._changed.wait_for(lambda: not self.active or not (self._timings or self._waiting))
            self._builds += 1
        try:
            yield
        finally:
            with self._changed:
                self._builds -= 1
                self._changed.notify_all()

    @contextmanager
    def timing(self) -> Generator[None]:
        """Hold off builds and other timings."""
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: not self.active or not (self._builds or self._timings))
            self._waiting -= 1
            self._timings += 1
        try:
            yield
        finally:
            with self._changed:
                self._timings -= 1
                self._changed.notify_all()
