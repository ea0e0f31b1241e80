"""Sets up Triton's interpreter in a worker: exact arithmetic, the memory checker and, for a model target, a fake GPU.

Runs in the untrusted worker: imports the standard library, numpy, torch and triton.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from triton.runtime.autotuner import Autotuner

from kernel_scientist.gpu.capture import jit
from kernel_scientist.gpu.capture.facts import Facts
from kernel_scientist.gpu.capture.fake_device import pretended
from kernel_scientist.gpu.interpreter import checker, numerics, tiles


class Interpreter:
    """Wraps a submission's `custom_kernel`."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """`settings`: `facts` of the fake GPU, if any; `writes` and `updates`, the positions of writable inputs."""
        numerics.install()
        self.facts = Facts(**settings["facts"]) if settings.get("facts") else None
        self.writes: tuple[int, ...] = tuple(settings["writes"])
        self.updates: tuple[int, ...] = tuple(settings["updates"])
        self.reports: list[dict[str, Any]] = []
        self.draws: tuple[float, ...] = ()
        """Places in the grid of the programs whose tiles are executed; empty: all programs are."""
        self.survey_s = 0.0
        """Limit of the CPU time for choosing programs."""
        self.tuned: list[tuple[str, dict[str, str]]] = []
        """Kernel and constants of the launches that an autotuner makes."""
        Autotuner.run = self._tune  # pyright: ignore[reportAttributeAccessIssue]
        self.configurations: list[dict[str, str]] = []

    def pretending(self) -> AbstractContextManager[None]:
        """Make torch report the fake GPU within the context, if there is one."""
        return pretended(self.facts) if self.facts else contextlib.nullcontext()

    def choose(
        self, draws: Sequence[float], seconds: float, tuned: Sequence[tuple[str, dict[str, str]]], counted: bool = False
    ) -> None:
        """Execute only programs that compute tiles of the output from now on (see `tiles.choose`)."""
        self.draws, self.survey_s, self.tuned = tuple(draws), seconds, [(name, constants) for name, constants in tuned]

    def _tune(self, tuner: Any, *args: Any, **options: Any) -> Any:
        return jit.launch_tuned(tuner, self.tuned, args, options)

    def wrapped(self, kernel: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return the kernel, wrapped by the memory checker."""

        def custom_kernel(data: Any) -> Any:
            report, output, plan, start = None, None, None, time.process_time()
            try:
                if self.draws:
                    with self.pretending():
                        plan = tiles.choose(kernel, data, self.draws, self.survey_s)
                writable = (*self.writes, *self.updates)
                with checker.watched(data, writable, self.updates, plan) as report, self.pretending():
                    output = kernel(data)
            finally:  # the report holds the reason of a failure; making it must not be watched
                if report is not None:
                    told = report.message(output)
                    if plan is not None:
                        told |= {
                            "known": report.known(output),
                            "plan": {**plan.message(), "seconds": time.process_time() - start},
                        }
                    self.reports.append(told)
            return output

        return custom_kernel

    def report(self) -> dict[str, Any]:
        """Return the reports since the last call."""
        found, self.reports = self.reports, []
        return {"calls": found}
