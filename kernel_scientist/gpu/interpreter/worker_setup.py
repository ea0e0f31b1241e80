"""Triton's interpreter in a worker: exact arithmetic, watched memory and, for a modelled GPU, its facts.

Runs in the untrusted worker: imports the standard library, numpy, torch and triton.
"""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from kernel_scientist.gpu.capture.fake_device import Facts, pretended
from kernel_scientist.gpu.interpreter import checker, numerics


class Interpreter:
    """Wraps a submission's `custom_kernel`."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """`settings`: `facts` of the GPU that is pretended, if any; `writes`, positions of inputs to be written."""
        numerics.install()
        self.facts = Facts(**settings["facts"]) if settings.get("facts") else None
        self.writes: tuple[int, ...] = tuple(settings["writes"])
        self.reports: list[dict[str, Any]] = []
        self.most_programs: int | None = None
        """Of a launch that are executed; None: all."""

    def pretending(self) -> AbstractContextManager[None]:
        """Let torch say that the GPU is there, where there is one to pretend."""
        return pretended(self.facts) if self.facts else contextlib.nullcontext()

    def wrapped(self, kernel: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return the kernel as it is to be called."""

        def custom_kernel(data: Any) -> Any:
            report, output = None, None
            try:
                with checker.watched(data, self.writes, (), self.most_programs) as report, self.pretending():
                    output = kernel(data)
            finally:  # what broke it is in the report, which must not be watched itself
                if report is not None:
                    self.reports.append(report.message(output))
            return output

        return custom_kernel

    def report(self) -> dict[str, Any]:
        """Return what was seen since it was last asked for."""
        found, self.reports = self.reports, []
        return {"calls": found}
