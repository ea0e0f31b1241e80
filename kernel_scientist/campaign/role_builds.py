"""Builds for roles that compile and check before they hand a kernel in, in turn with the campaign's own builds."""

from collections.abc import Callable
from functools import partial

from kernel_scientist.campaign import steps
from kernel_scientist.campaign.bench import Bench
from kernel_scientist.campaign.target import Builder
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.records.params import Llm

Run = Callable[[Callable[[], Evaluation]], Evaluation]
"""Carries out a build, at once or once it is its turn."""


class RoleBuilds:
    """Builds on this host. `run`: by default at once; an engine lets them queue with its own."""

    def __init__(self, bench: Bench) -> None:
        """Raises SetupError if a role has tools and kernels are built elsewhere."""
        self.bench = bench
        self.run: Run = lambda build: build()
        if bench.target.builder is None and (named := _with_tools(bench.params.llm)):
            where = bench.address
            raise SetupError(f"llm.{named}.tools: kernels are not built here, but where they are timed ({where})")

    def compile(self, kernel: Kernel) -> Evaluation:
        """Compile a kernel. Raises InfrastructureError."""
        return self.run(partial(self._compiled, self._builder, kernel))

    def check(self, kernel: Kernel) -> Evaluation:
        """Compile a kernel and compare its outputs on the public cases. Raises InfrastructureError."""
        return self.run(partial(steps.compile_kernel, self.bench, kernel))

    def _compiled(self, builder: Builder, kernel: Kernel) -> Evaluation:
        with self.bench.quiet.building():
            return builder.compile(kernel)

    @property
    def _builder(self) -> Builder:
        builder = self.bench.target.builder
        assert builder is not None, "no role has tools where nothing is built"
        return builder


def _with_tools(llm: Llm) -> str:
    """Return the name of a role that has tools; empty if none has."""
    return "writer" if llm.writer.tools else "repairer" if llm.repairer.tools else ""
