"""Waiting for an MLflow store that does not answer: what is waited for, since when and until when is said."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from kernel_scientist.records.errors import InfrastructureError, StoppedError

T = TypeVar("T")
WAIT_S = 900.0
"""How long a store is waited for, in seconds."""
DELAYS_S = (1.0, 2.0, 5.0, 15.0)
"""Delays between two attempts, in seconds; the last one is repeated."""
OURS = (StoppedError, AssertionError, LookupError, TypeError, AttributeError)
"""Errors that no waiting mends."""
LASTING = ("INVALID_PARAMETER_VALUE", "RESOURCE_DOES_NOT_EXIST", "RESOURCE_ALREADY_EXISTS", "PERMISSION_DENIED")
"""Codes of MLflow's errors that no waiting mends."""
progress = logging.getLogger("kernel_scientist.progress")


def insist(act: Callable[[], T], store: str, stopped: threading.Event, wait_s: float = WAIT_S) -> T:
    """Return what `act` returns, which may be called again; any error of the store is waited out.

    Raises InfrastructureError after `wait_s` seconds, StoppedError once `stopped` is set.
    """
    start, since, attempts = time.monotonic(), datetime.now(), 0
    while True:
        try:
            result = act()
        except Exception as error:  # MLflow's client does not wrap transport and database errors
            if isinstance(error, OURS) or getattr(error, "error_code", "") in LASTING:
                raise
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
            if time.monotonic() - start > wait_s:
                raise InfrastructureError(
                    f"the MLflow store {store} did not take records for {wait_s / 60:.0f} min ({reason}); what it took "
                    "before is kept, and `kernel-scientist optimize --resume` continues"
                ) from error
            if attempts == 0:
                until = since + timedelta(seconds=wait_s)
                times = f"{since:%H:%M:%S}", f"{until:%H:%M:%S}"
                progress.warning("waiting since %s, until %s, for the MLflow store %s: %s", *times, store, reason)
            if stopped.wait(DELAYS_S[min(attempts, len(DELAYS_S) - 1)]):
                raise StoppedError("stopped by a signal") from error
            attempts += 1
        else:
            if attempts:
                progress.warning("the MLflow store answers again, after %.0f s", time.monotonic() - start)
            return result
