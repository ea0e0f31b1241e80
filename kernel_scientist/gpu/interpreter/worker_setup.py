"""Sets up Triton's interpreter in a worker: exact arithmetic, the memory checker and, for a model target, a fake GPU.

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
        """`settings`: `facts` of the fake GPU, if any; `writes`, the positions of writable inputs."""
        numerics.install()
        self.facts = Facts(**settings["facts"]) if settings.get("facts") else None
        self.writes: tuple[int, ...] = tuple(settings["writes"])
        self.reports: list[dict[str, Any]] = []
        self.most_programs: int | None = None
        """Maximum programs executed per launch; None: all."""

    def pretending(self) -> AbstractContextManager[None]:
        """Make torch report the fake GPU within the context, if there is one."""
        return pretended(self.facts) if self.facts else contextlib.nullcontext()

    def wrapped(self, kernel: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return the kernel, wrapped by the memory checker."""

        def custom_kernel(data: Any) -> Any:
            report, output = None, None
            try:
                with checker.watched(data, self.writes, (), self.most_programs) as report, self.pretending():
                    output = kernel(data)
            finally:  # the report holds the reason of a failure; making it must not be watched
                if report is not None:
                    self.reports.append(report.message(output))
            return output

        return custom_kernel

    def report(self) -> dict[str, Any]:
        """Return the reports since the last call."""
        found, self.reports = self.reports, []
        return {"calls": found}
