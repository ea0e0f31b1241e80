"""Calls in progress: each in a thread that the campaign's end does not wait for; equal requests share one call."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from kernel_scientist.records.errors import StoppedError
from kernel_scientist.scientist.llm.failures import CallError
from kernel_scientist.scientist.llm.response_cache import Reply

T = TypeVar("T")
POLL_S = 0.2


class CallsInFlight:
    """Calls by the keys of their requests. Thread-safe."""

    def __init__(self, stopped: threading.Event) -> None:
        self.stopped = stopped
        self._futures: dict[str, Future[Reply]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._futures)

    def share(self, key: str, recall: Callable[[], Reply | None], call: Callable[[], Reply]) -> tuple[Reply, bool]:
        """Return the reply to a request, and whether it was not paid for here but recalled, or by another thread.

        `recall` looks in the cache: the reply may have arrived since this thread looked.
        """
        with self._lock:
            calling = self._futures.get(key)
            mine: Future[Reply] = Future()
            if calling is None:
                self._futures[key] = mine
        if calling is not None:
            return self._result(calling), True
        try:
            recalled = recall()
            reply = recalled or call()
            mine.set_result(reply)
            return reply, recalled is not None
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._futures[key]

    def make(self, call: Callable[[], T], keep: Callable[[T], Reply], limit_s: float) -> Reply:
        """Return what `keep` returns for a call's answer.

        Raises StoppedError if `stopped` is set first, CallError if the call has no answer after `limit_s`; `keep` has
        no limit here. The call itself cannot be interrupted: its answer is kept when it arrives. A daemon thread,
        because a ThreadPoolExecutor's threads delay the end of the process.
        """
        answer: Future[T] = Future()
        kept: Future[Reply] = Future()

        def run() -> None:
            _settle(answer, call)
            _settle(kept, lambda: keep(answer.result()))

        threading.Thread(target=run, daemon=True, name="model").start()
        self._result(answer, limit_s)
        return self._result(kept)

    def _result(self, future: Future[T], limit_s: float | None = None) -> T:
        began = time.monotonic()
        while not wait([future], POLL_S).done:
            if self.stopped.is_set():
                raise StoppedError("the campaign was stopped during a model call")
            if limit_s is not None and time.monotonic() - began > limit_s:
                raise CallError(f"the reply did not end within {limit_s:g} s", True)
        return future.result()


def _settle(future: Future[T], act: Callable[[], T]) -> None:
    """Give a future the result of an act, or its error."""
    try:
        future.set_result(act())
    except BaseException as error:
        future.set_exception(error)
