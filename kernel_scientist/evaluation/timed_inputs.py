"""Inputs of timed cases of a GPU that is not here, drawn before they are needed and kept from kernel to kernel."""

import contextlib
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

from kernel_scientist.evaluation.inputs import InputGenerator, InputSet
from kernel_scientist.records.kernel import Case


class TimedInputs:
    """One set of inputs per case. Large ones take long to generate; a thread of its own does it."""

    def __init__(self, generator: InputGenerator) -> None:
        self._generator, self._lock, self._thread = generator, threading.Lock(), ThreadPoolExecutor(1)
        self._sets: dict[str, Future[InputSet]] = {}

    def get(self, case: Case) -> InputSet:
        """Return a case's inputs, as soon as they are drawn. Raises what the problem raises (`Problem.generate`)."""
        while True:
            with contextlib.suppress(CancelledError):  # by another kernel's evaluation, which ended
                return self._drawing(case).result()

    @contextlib.contextmanager
    def drawn_ahead(self, cases: Sequence[Case]) -> Generator[None]:
        """Draw inputs in the order of `cases` while the context lasts."""
        drawing = [self._drawing(case) for case in cases]
        try:
            yield
        finally:
            for future in drawing:
                future.cancel()

    def _drawing(self, case: Case) -> Future[InputSet]:
        with self._lock:
            known = self._sets.get(case.name)
            if known is None or (known.done() and (known.cancelled() or known.exception())):
                known = self._sets[case.name] = self._thread.submit(self._generator.draw, case)
            return known
