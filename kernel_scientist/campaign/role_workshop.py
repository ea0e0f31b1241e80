"""Builds and quick looks at times for roles with tools, in turn with the campaign's own work and behind it."""

from collections.abc import Callable
from functools import partial

from kernel_scientist.campaign import steps
from kernel_scientist.campaign.bench import Bench
from kernel_scientist.campaign.target import Builder
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.records import disk, environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel

Run = Callable[[str, Callable[[], Evaluation]], Evaluation]
"""Carries out work of a stage, `build` or `device`, at once or once it is its turn."""


class RoleWorkshop:
    """Builds and looks on this host. `run`: by default at once; an engine lets them queue with its own work."""

    def __init__(self, bench: Bench) -> None:
        """Raises SetupError if a role builds by tools and kernels are built elsewhere."""
        llm = bench.params.llm
        if bench.target.builder is None and (llm.writer.tools or llm.repairer.tools):
            name, target = "writer" if llm.writer.tools else "repairer", bench.params.target
            raise SetupError(f"llm.{name}.tools: kernels of target {target} are built where they are timed, not here")
        self.bench = bench
        self.run: Run = lambda stage, work: work()

    @property
    def pairs(self) -> bool:
        """Whether two kernels can be timed in one run."""
        return self.bench.target.pairs

    def compile(self, kernel: Kernel) -> Evaluation:
        """Compile a kernel. Raises InfrastructureError."""
        return self.run("build", partial(self._compiled, self._builder, kernel))

    def check(self, kernel: Kernel) -> Evaluation:
        """Compile a kernel and compare its outputs on the public cases. Raises InfrastructureError."""
        return self.run("build", partial(self._checked, kernel))

    def look(self, kernel: Kernel, checked: Evaluation, base: Kernel) -> Evaluation:
        """Time a kernel that passed its check and its base in one run, on the public timed cases. Raises
        InfrastructureError.

        One stage without a margin, as in tuning: what is handed in is timed in full.
        """
        bench = self.bench
        quick = bench.params.harness.model_copy(update={"stages": 1, "noise_runs": 0})
        measure = partial(bench.target.with_harness(quick).time, kernel, checked, [TimedSource.of(base)])
        turn = bench.turn(f"look at {kernel.name}")
        return self.run("device", partial(steps.time_kernel, bench, kernel, measure, turn))

    @property
    def profiler(self) -> str:
        """Name of the program that profiles calls here; empty if there is none."""
        return self.bench.target.profiler

    def profile(self, kernel: Kernel, checked: Evaluation, case: str) -> Evaluation:
        """Profile a kernel that passed its check on a public timed case. Raises InfrastructureError."""
        bench = self.bench
        one = next(one for one in bench.target.profile.benchmarks if one.name == case)
        measure = partial(bench.target.profiled, kernel, checked, one)
        turn = bench.turn(f"profile {kernel.name}")
        return self.run("device", partial(steps.time_kernel, bench, kernel, measure, turn))

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
        assert builder is not None, "no role builds by tools where nothing is built"
        return builder
