"""Keeps a submission's host code away from the inputs, as they lie in the memory of a GPU that is not here.

Otherwise host code could compute with them, and a prediction, which counts what the GPU does, would not see it.
Small inputs, and memory that torch or `hipMalloc` allocates, are not closed. Runs in workers: standard library only.
"""

import contextlib
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class InputMemory:
    """The inputs' memory of a worker. An access while it is closed ends the process."""

    protect: Callable[[bool], object] = bool
    """Closes it (True) or opens it; `bool`: it is always open."""
    _lock: Any = field(default_factory=threading.RLock)
    _users: int = 1

    @contextlib.contextmanager
    def closed(self) -> Generator[None]:
        """Close it within the context, but for users."""
        self.leave()
        try:
            yield
        finally:
            self.use()

    @contextlib.contextmanager
    def used(self) -> Generator[None]:
        """Open it within the context: for launches, operations of torch, and copies by HIP's runtime."""
        self.use()
        try:
            yield
        finally:
            self.leave()

    def use(self) -> None:
        """Open it for one more user."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self.protect(False)

    def leave(self) -> None:
        """Close it after the last user."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self.protect(True)
