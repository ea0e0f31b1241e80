"""Stages with queues: each stage has threads that take work from its queue; one thread handles the results."""

import contextvars
import queue
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Pipeline:
    """Work in progress. Only `submit`'s work runs in other threads; results are handled by the caller of `handle`.

    Work runs in a copy of the context of the thread that submits it, so that Prefect's tasks belong to its flow run.
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        """`widths`: number of threads by stage."""
        self._stages = {name: ThreadPoolExecutor(width, thread_name_prefix=name) for name, width in widths.items()}
        self._done: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.busy = 0
        """Pieces of work that are submitted and whose results are not handled yet."""

    def submit(self, stage: str, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Queue work for a stage. `then` gets its result, in the thread that calls `handle`."""

        def finished(future: Future[T]) -> None:
            self._done.put(lambda: then(future.result()))

        self.busy += 1
        self._stages[stage].submit(contextvars.copy_context().run, work).add_done_callback(finished)

    def handle(self, timeout_s: float) -> None:
        """Wait for the next result and handle it; return without one after `timeout_s`. Raises what the work raised."""
        try:
            handler = self._done.get(timeout=timeout_s)
        except queue.Empty:
            return
        self.busy -= 1
        handler()

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel what has not begun, and wait for the rest."""
        for stage in self._stages.values():
            stage.shutdown(wait=False, cancel_futures=True)
        for stage in self._stages.values():
            stage.shutdown(wait=True)
