"""Takes Triton's launches to the machine: compiles for the GPU that is pretended, and executes instead of launching.

Runs in workers: standard library, torch, triton, and modules of this package.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from triton.compiler import CompiledKernel
from triton.runtime import cache
from triton.runtime.autotuner import Autotuner, OutOfResources
from triton.runtime.jit import JITFunction

from kernel_scientist.gpu.capture import driver, jit
from kernel_scientist.gpu.capture.facts import Facts
from kernel_scientist.gpu.machine.assumptions import Assumptions
from kernel_scientist.gpu.machine.dispatch import KernelLaunch
from kernel_scientist.gpu.machine.executor import Executor
from kernel_scientist.gpu.machine.launch import NotSimulatedError
from kernel_scientist.gpu.machine.listing import Argument

FLOATS = {"fp32": "<f", "f32": "<f", "fp64": "<d", "f64": "<d", "fp16": "<e", "f16": "<e"}
WAVE = 64


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
        loaded = self.executor.code(code.asm["amdgcn"])
        name = metadata.name
        arguments = self._arguments(loaded.kernels[name].arguments, code.src.signature, bound)
        block = (metadata.num_warps * WAVE, 1, 1)
        names = {storage: argument for argument, value in bound.items() for storage in _storages(value)}
        launch = KernelLaunch(loaded, name, (x, y, z), block, arguments, metadata.shared, tensors=names)
        self.executor.run(launch)

    def _arguments(self, places: Sequence[Argument], signature: Mapping[str, Any], bound: Mapping[str, Any]) -> bytes:
        """Return the explicit arguments as they lie in the kernarg segment: those that are no constants."""
        given = [(signature[name], value) for name, value in bound.items() if signature.get(name) != "constexpr"]
        explicit = [place for place in places if not place.kind.startswith("hidden")]
        segment = bytearray(max((place.offset + place.size for place in explicit), default=0))
        flat = [one for kind, value in given for one in self._flattened(kind, value)]
        if len(flat) > len(explicit):
            raise NotSimulatedError(f"{len(flat)} arguments were given, the kernel takes {len(explicit)}")
        for place, (kind, value) in zip(explicit, flat, strict=False):  # Triton's own scratch memory comes last: none
            segment[place.offset : place.offset + place.size] = self._packed(kind, value, place.size)
        return bytes(segment)

    def _flattened(self, kind: Any, value: Any) -> list[tuple[str, Any]]:
        if isinstance(kind, tuple | list):
            parts = zip(kind, value, strict=True)
            return [one for part, each in parts if part != "constexpr" for one in self._flattened(part, each)]
        if str(kind).startswith("tensordesc"):
            return _described(str(kind), value)
        return [(str(kind), value)]

    def _packed(self, kind: str, value: Any, size: int) -> bytes:
        base = getattr(value, "base", value)  # of a reinterpreted tensor
        if hasattr(base, "untyped_storage"):
            assert self.executor.allocations is not None
            self.executor.allocations.see(base)
            return int(base.data_ptr()).to_bytes(8, "little")
        if hasattr(value, "data_ptr"):
            return int(value.data_ptr()).to_bytes(8, "little")
        if kind in FLOATS:
            return struct.pack(FLOATS[kind], value)
        if kind == "bf16":
            return struct.pack("<f", value)[2:]
        return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _load(code: Any) -> None:
    """Do as if code were loaded on the device. Its registers are not looked up."""
    code.n_regs, code.n_spills, code.n_max_threads = 0, 0, 1024


def _described(kind: str, given: Any) -> list[tuple[str, Any]]:
    """Return the arguments of a tensor descriptor: gfx942 has none, so its parts are passed, the sizes twice."""
    sizes = [("i64", number) for number in (*given.shape, *given.strides)]
    flags = [("i1", given.padding == "nan"), ("i1", getattr(given, "round_f32_to_tf32", False))]
    return [(f"*{kind}", given.base), *sizes, *flags, *sizes]


def _storages(value: Any) -> list[int]:
    """Return the address of the memory that an argument's elements lie in, if it is a tensor."""
    base = getattr(value, "base", value)
    return [int(base.untyped_storage().data_ptr())] if hasattr(base, "untyped_storage") else []
