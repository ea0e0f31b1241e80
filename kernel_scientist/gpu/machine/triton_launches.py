"""Takes Triton's launches to the machine: compiles for the GPU that is pretended, and executes instead of launching.

Runs in workers: standard library, torch, triton, and modules of this package.
"""

from collections.abc import Callable, Sequence
from typing import Any

from triton.compiler import CompiledKernel
from triton.runtime import cache
from triton.runtime.autotuner import Autotuner, OutOfResources
from triton.runtime.jit import JITFunction

from kernel_scientist.gpu.fake import driver, host_tensors, jit, preloaded
from kernel_scientist.gpu.fake.facts import Facts
from kernel_scientist.gpu.machine import triton_arguments
from kernel_scientist.gpu.machine.assumptions import Assumptions
from kernel_scientist.gpu.machine.executor import Executor

preloaded.load()


class TritonLaunches:
    """Replaces Triton's launches in this process."""

    def __init__(self, facts: Facts, executor: Executor) -> None:
        self.facts, self.executor = facts, executor
        self.tuned: Sequence[jit.Known] | None = None
        """Kernel and constants of launches as predicted, which autotuners repeat. None: they take another
        configuration in each call."""
        self.turns: dict[str, int] = {}
        """Calls so far in which an autotuner launched, by kernel."""
        self.configurations: list[jit.Configuration] = []
        """The configurations that autotuners took in their turn."""
        self._kernels: dict[int, tuple[Any, Any]] = {}
        """Function and compiled kernel, by the compiled kernel's `id`."""
        self.assumptions = Assumptions()
        driver.install(facts, self._benchmark, lambda: int(self.assumptions.checked))
        cache.triton_key = lambda: self.assumptions.key  # the cache is this process's own; Triton's own key takes 0.3 s
        compiled: Callable[..., Any] = JITFunction.run  # pyright: ignore[reportUnknownMemberType]

        def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
            code = compiled(kernel, *args, grid=grid, warmup=True, **options)
            self._kernels[id(code)] = (kernel, code)
            if not warmup:
                self._launch(kernel, code, args, grid, options)
            return code

        def launcher(code: Any, grid: Any) -> Callable[..., None]:
            kernel, _ = self._kernels[id(code)]
            return lambda *args, **options: self._launch(kernel, code, args, grid, options)

        def tune(tuner: Any, *args: Any, **options: Any) -> Any:
            return self._tune(tuner, args, options)

        JITFunction.run = run  # pyright: ignore
        CompiledKernel._init_handles = _load  # pyright: ignore
        CompiledKernel.__getitem__ = launcher  # pyright: ignore
        Autotuner.run = tune  # pyright: ignore

    def _benchmark(self, call: Callable[[], Any], quantiles: Any = None) -> list[float]:
        """Say that every configuration takes as long: nothing is timed here."""
        return [1.0] * 3

    def _tune(self, tuner: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if self.tuned is not None:
            return jit.launch_tuned(tuner, self.tuned, args, options)
        turn = self.turns.get(tuner.base_fn.__name__, 0)
        result, configuration = jit.launch_in_turn(tuner, turn, args, options)
        self.configurations.append(configuration)
        return result

    def end_call(self) -> None:
        """Note that a call of the submission has ended: in the next one autotuners take other configurations."""
        for name in {one.kernel for one in self.configurations}:
            self.turns[name] = self.turns.get(name, 0) + 1
        self.configurations = []

    def _launch(self, kernel: Any, code: Any, args: tuple[Any, ...], grid: Any, options: dict[str, Any]) -> None:
        metadata = code.metadata
        if excess := self.facts.excess(metadata.name, metadata.num_warps, metadata.shared):
            raise OutOfResources(*excess)
        bound = jit.bound(kernel, args, options)
        sizes: Any = grid(bound) if callable(grid) else grid
        x, y, z = (int(n) for n in (*sizes, 1, 1)[:3])
        self.facts.require_grid(metadata.name, (x, y, z), metadata.num_warps)
        assert self.executor.allocations is not None, "a launch outside of a call"
        for tensor in triton_arguments.tensors(bound):
            if host_tensors.is_out_of_reach(tensor):
                name = next((name for name, value in bound.items() if value is tensor), "a descriptor's base")
                raise ValueError(f"Pointer argument ({name}) cannot be accessed from Triton (cpu tensor?)")
            self.executor.allocations.see(tensor)
        loaded = self.executor.code(code.asm["amdgcn"])
        self.executor.run(triton_arguments.launch(loaded, code, bound, (x, y, z)))


def _load(code: Any) -> None:
    """Do as if code were loaded on the device. Its registers are not looked up."""
    code.n_regs, code.n_spills, code.n_max_threads = 0, 0, 1024
