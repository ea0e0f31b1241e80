"""Builds for roles that compile and check before they hand a kernel in, in turn with the campaign's own builds."""

from collections.abc import Callable
from functools import partial

from kernel_scientist.campaign import steps
from kernel_scientist.campaign.bench import Bench
from kernel_scientist.campaign.target import Builder
from kernel_scientist.records import disk, environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel

Run = Callable[[Callable[[], Evaluation]], Evaluation]
"""Carries out a build, at once or once it is its turn."""


class RoleBuilds:
    """Builds on this host. `run`: by default at once; an engine lets them queue with its own."""

    def __init__(self, bench: Bench) -> None:
        """Raises SetupError if a role has tools and kernels are built elsewhere."""
        llm = bench.params.llm
        if bench.target.builder is None and (llm.writer.tools or llm.repairer.tools):
            name, target = "writer" if llm.writer.tools else "repairer", bench.params.target
            raise SetupError(f"llm.{name}.tools: kernels of target {target} are built where they are timed, not here")
        self.bench = bench
        self.run: Run = lambda build: build()

    def compile(self, kernel: Kernel) -> Evaluation:
        """Compile a kernel. Raises InfrastructureError."""
        return self.run(partial(self._compiled, self._builder, kernel))

    def check(self, kernel: Kernel) -> Evaluation:
        """Compile a kernel and compare its outputs on the public cases. Raises InfrastructureError."""
        return self.run(partial(self._checked, kernel))

    def _checked(self, kernel: Kernel) -> Evaluation:
        self._await_room()
        return steps.compile_kernel(self.bench, kernel)

    def _compiled(self, builder: Builder, kernel: Kernel) -> Evaluation:
        self._await_room()
        with self.bench.quiet.building():
            return builder.compile(kernel)

    def _await_room(self) -> None:
        disk.await_room(environment.cache_folder(), self.bench.stopped)

    @property
    def _builder(self) -> Builder:
        builder = self.bench.target.builder
        assert builder is not None, "no role has tools where nothing is built"
        return builder
