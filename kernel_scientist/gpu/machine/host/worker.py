"""HIP submissions in a worker: their host code is connected to the machine that executes launches.

Runs in the untrusted worker: standard library, numpy, torch, and modules of this package.
"""

from pathlib import Path
from types import ModuleType

from kernel_scientist.compilers import extension
from kernel_scientist.compilers.request import ExtensionRequest
from kernel_scientist.gpu.fake.facts import Facts
from kernel_scientist.gpu.machine.executor import Executor
from kernel_scientist.gpu.machine.host import module, submitted
from kernel_scientist.gpu.machine.host.session import Session
from kernel_scientist.gpu.machine.host.simulated import Simulated
from kernel_scientist.gpu.machine.host.submitted import Text
from kernel_scientist.gpu.toolchains.quoted_sources import SUBMISSION
from kernel_scientist.gpu.toolchains.sources import text_name


class HostCode:
    """The stand-in for HIP's runtime in this process."""

    def __init__(self, stand_in: str, facts: Facts, executor: Executor) -> None:
        """`stand_in`: the library that the evaluator built."""
        self._executor = executor
        device = Simulated(facts, executor.code, executor.run, lambda: executor.allocations, executor.memory)
        self.session = Session(Path(stand_in), device)
        self._sources: list[Text] = []
        extension.importer = self._imported

    def check(self) -> None:
        """Raise what the call of an operator met in HIP's runtime: operators have no function to wrap."""
        module.check(self._sources, self.session)

    def _imported(self, request: ExtensionRequest, path: str, is_module: bool) -> ModuleType | None:
        file = Path(SUBMISSION).read_text()
        self._sources += submitted.texts(request, file)
        for number, text in enumerate(request.cuda_sources, 1 if request.headers else 0):
            self._executor.sources.add(text_name(request.name, number), text, file)
        return module.imported(request, path, is_module, self.session, file)
