"""Decide by predicted time which kernels are worth executing (`search.prescreen`)."""

import threading
from collections.abc import Iterable

from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Kernel, Verdict


class Prescreen:
    """Selects the best `most` kernels of each generation for execution. Thread-safe.

    There is no barrier: a kernel is compared with those of its generation that were compiled before it. So the best
    ones always pass, in any order, and sometimes one more.
    """

    def __init__(self, most: int, population: Iterable[Trial] = ()) -> None:
        """`most`: 0 lets all kernels through. `population`: the kernels recorded before a resume."""
        self.most = most
        self._lock = threading.Lock()
        self._predicted_us: dict[int, dict[str, float]] = {}
        """Predicted times in microseconds by generation and kernel."""
        for trial in population:
            us = trial.evaluation.predicted_us
            if us is not None and trial.evaluation.verdict is Verdict.OK and not trial.evaluation.skipped:
                self._predicted_us.setdefault(trial.kernel.generation, {})[trial.kernel.name] = us

    def skipped(self, kernel: Kernel, compiled: Evaluation) -> Evaluation | None:
        """Return the final evaluation of an experiment that is not executed, or None if it is to be executed."""
        us = compiled.predicted_us
        if not self.most or us is None or kernel.experiment is None or kernel.tuned_from:
            return None
        with self._lock:
            times_us = self._predicted_us.setdefault(kernel.generation, {})
            times_us[kernel.name] = us
            faster = sorted(name for name, other_us in times_us.items() if other_us < us)
            if len(faster) < self.most:
                return None
            del times_us[kernel.name]
        reason = f"not executed: {', '.join(faster[: self.most])} are predicted to be faster (search.prescreen)"
        return compiled.model_copy(update={"reason": reason, "skipped": True})

    def forget(self, kernel: Kernel) -> None:
        """Remove a kernel that failed, so that it no longer keeps others from being executed."""
        with self._lock:
            self._predicted_us.get(kernel.generation, {}).pop(kernel.name, None)
