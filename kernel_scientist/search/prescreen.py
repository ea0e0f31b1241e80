"""Which kernels are worth executing, by what a machine model predicts of them (`search.prescreen`)."""

import threading
from collections.abc import Iterable

from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Kernel, Verdict


class Prescreen:
    """Lets the best `most` of each generation through. Thread-safe.

    There is no barrier: a kernel is held against those of its generation that were compiled before it. So the best ones
    always go on, whatever the order, and sometimes one more.
    """

    def __init__(self, most: int, population: Iterable[Trial] = ()) -> None:
        """`most`: 0 lets all through. `population`: kernels of an earlier sitting."""
        self.most = most
        self._lock = threading.Lock()
        self._foreseen: dict[int, dict[str, float]] = {}
        """Predicted times in us by generation and kernel."""
        for trial in population:
            us = trial.evaluation.predicted_us
            if us is not None and trial.evaluation.verdict is Verdict.OK and not trial.evaluation.held:
                self._foreseen.setdefault(trial.kernel.generation, {})[trial.kernel.name] = us

    def held(self, kernel: Kernel, so_far: Evaluation) -> Evaluation | None:
        """Return the evaluation of an experiment that is not executed; None where it goes on."""
        us = so_far.predicted_us
        if not self.most or us is None or kernel.experiment is None or kernel.tuned_from:
            return None
        with self._lock:
            known = self._foreseen.setdefault(kernel.generation, {})
            known[kernel.name] = us
            faster = sorted(name for name, other in known.items() if other < us)
            if len(faster) < self.most:
                return None
            del known[kernel.name]
        words = f"not executed: {', '.join(faster[: self.most])} are predicted to be faster (search.prescreen)"
        return so_far.model_copy(update={"reason": words, "held": True})

    def forget(self, kernel: Kernel) -> None:
        """Take a kernel that is not right out of others' way."""
        with self._lock:
            self._foreseen.get(kernel.generation, {}).pop(kernel.name, None)
