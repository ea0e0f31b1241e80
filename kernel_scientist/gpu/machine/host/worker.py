"""HIP submissions in a worker: their host code is connected to the machine that executes launches.

Runs in the untrusted worker: standard library, numpy, torch, and modules of this package.
"""

import functools
from pathlib import Path

from kernel_scientist.compile import extension
from kernel_scientist.gpu.capture.facts import Facts
from kernel_scientist.gpu.machine.executor import Executor
from kernel_scientist.gpu.machine.host import module
from kernel_scientist.gpu.machine.host.session import Session
from kernel_scientist.gpu.machine.host.simulated import Simulated
from kernel_scientist.gpu.machine.launch import Memory


class HostCode:
    """The stand-in for HIP's runtime in this process."""

    def __init__(self, stand_in: str, facts: Facts, executor: Executor) -> None:
        """`stand_in`: the library that the evaluator built."""
        self._executor = executor
        self.device = Simulated(facts, executor.code, executor.run, self._memory)
        self.session = Session(Path(stand_in), self.device)
        extension.importer = functools.partial(module.imported, session=self.session)

    def _memory(self) -> Memory | None:
        allocations = self._executor.allocations
        return None if allocations is None else allocations.memory()
