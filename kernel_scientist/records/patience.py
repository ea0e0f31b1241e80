"""Waiting until something that is away is there again: a store, room on a disk."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from kernel_scientist.records.errors import InfrastructureError, StoppedError

T = TypeVar("T")
WAIT_S = 900.0
"""How long a campaign waits for a store or a disk, in seconds."""
progress = logging.getLogger("kernel_scientist.progress")


@dataclass(frozen=True)
class Patience:
    """Repeats acts that fail because something is away."""

    what: str
    """What is waited for, such as `room on the disk`."""
    returned: str
    """What the log says once it is there again."""
    failed: str
    """What an error says that it did until the end of the wait."""
    reason: Callable[[Exception], str | None]
    """Returns why an act failed; None if waiting does not mend it."""
    delays_s: Sequence[float]
    """Between two attempts, in seconds; the last one is repeated."""
    wait_s: float = WAIT_S

    def insist(self, act: Callable[[], T], stopped: threading.Event) -> T:
        """Return what `act` returns, which may be called several times.

        The first failure is logged. Raises InfrastructureError after `wait_s` seconds, StoppedError once `stopped` is
        set, and errors that waiting does not mend.
        """
        start, since, attempts = time.monotonic(), datetime.now(), 0
        while True:
            try:
                result = act()
            except Exception as error:
                if (reason := self.reason(error)) is None:
                    raise
                if time.monotonic() - start > self.wait_s:
                    raise InfrastructureError(
                        f"{self.failed} for {self.wait_s / 60:.0f} min ({reason}); what was recorded before is kept, "
                        "and `kernel-scientist optimize --resume` continues"
                    ) from error
                if attempts == 0:
                    until = since + timedelta(seconds=self.wait_s)
                    times = f"{since:%H:%M:%S}", f"{until:%H:%M:%S}"
                    progress.warning("waiting since %s, until %s, for %s: %s", *times, self.what, reason)
                if stopped.wait(self.delays_s[min(attempts, len(self.delays_s) - 1)]):
                    raise StoppedError("stopped by a signal") from error
                attempts += 1
            else:
                if attempts:
                    progress.warning("%s, after %.0f s", self.returned, time.monotonic() - start)
                return result
