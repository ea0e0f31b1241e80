"""Decide by predicted time which kernels are worth executing (`search.prescreen`)."""

import threading

from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict


class Prescreen:
    """Selects the best `most` kernels of each generation for execution. Thread-safe.

    There is no barrier: a kernel is compared with those of its generation that were compiled before it. So the best
    ones always pass, and slower ones if they are compiled first.
    """

    def __init__(self, most: int, population: Population) -> None:
        """`most`: 0 lets all kernels through. `population`: holds the kernels recorded before a resume."""
        self.most, self.population = most, population
        self._lock = threading.Lock()
        self._predicted_us: dict[int, dict[str, float]] = {}
        """Predicted times in microseconds by generation and kernel."""

    def skipped(self, kernel: Kernel, compiled: Evaluation) -> Evaluation | None:
        """Return the final evaluation of an experiment that is not executed, or None if it is to be executed."""
        us = compiled.predicted_us
        if not self.most or us is None or kernel.experiment is None or kernel.tuned_from:
            return None
        with self._lock:
            if kernel.generation not in self._predicted_us:
                self._predicted_us[kernel.generation] = self._recorded_us(kernel.generation)
            times_us = self._predicted_us[kernel.generation]
            times_us[kernel.name] = us
            faster = sorted(name for name, other_us in times_us.items() if other_us < us)
            if len(faster) < self.most:
                return None
            del times_us[kernel.name]
        reason = f"not executed: {', '.join(faster[: self.most])} are predicted to be faster (search.prescreen)"
        return compiled.model_copy(update={"verdict": Verdict.COMPILED, "reason": reason, "skipped": True})

    def _recorded_us(self, generation: int) -> dict[str, float]:
        entries = [e for e in self.population.generation(generation) if e.verdict is Verdict.OK and not e.skipped]
        times = {entry.name: self.population.get(entry.name).evaluation.predicted_us for entry in entries}
        return {name: us for name, us in times.items() if us is not None}

    def forget(self, kernel: Kernel) -> None:
        """Remove a kernel that failed, so that it no longer keeps others from being executed."""
        with self._lock:
            self._predicted_us.get(kernel.generation, {}).pop(kernel.name, None)
