"""Counts a Triton launch's memory traffic and flops by interpreting some of its programs.

Values are not computed: loads return zeros and `tl.dot` returns its accumulator, so a launch of any size is traced
quickly. Of a long loop two iterations are run and scaled; its trip count is recorded. The traced programs are one die's
share of the first wave, in dispatch order: the lines that they share are served by that die's L2.

Runs in untrusted processes: imports the standard library, numpy, torch and triton only.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable
from dataclasses import asdict, dataclass, field
from types import FunctionType
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction

from kernel_scientist.gpu.capture import counting_interpreter
from kernel_scientist.gpu.capture.counting_interpreter import Counter
from kernel_scientist.hardware.gpus import Gpu


@dataclass
class Trace:
    """Counts of one launch. Bytes and flops are sums over the whole grid, extrapolated from the traced programs."""

    programs: int
    traced: int = 0
    asked_bytes: float = 0.0
    """Bytes of all lanes of loads, stores and atomics, masked-off lanes included."""
    lines_bytes: float = 0.0
    """Bytes of the distinct lines of each access: requests from L1 to L2."""
    l2_bytes: float = 0.0
    """Bytes of the distinct lines of all programs that share an L2 at a time: requests from L2 to memory."""
    unique_bytes: float = 0.0
    """Bytes of the distinct lines of the whole launch, at most the size of the arguments: compulsory traffic."""
    flops: dict[str, float] = field(default_factory=dict[str, float])
    """Flops of `tl.dot`, by operand type."""
    trips: list[float] = field(default_factory=list[float])
    """Mean iterations per entry of each loop, outermost first."""
    storages: dict[str, float] = field(default_factory=dict[str, float])
    """Bytes of the arguments by storage: a later launch may find them in a cache."""

    def message(self) -> dict[str, Any]:
        """Return the trace as values that JSON can hold."""
        return asdict(self)


def trace(
    kernel: JITFunction[Any], arguments: dict[str, Any], grid: tuple[int, ...], slots: int, gpu: Gpu, most: int
) -> Trace:
    """Trace at most `most` programs of a launch on a GPU that runs `slots` of them at a time.

    Raises any exception of the kernel.
    """
    dies = gpu.dies
    whole = (*grid, 1, 1)[:3]
    programs = int(np.prod(whole))
    chosen = range(0, min(programs, slots), dies)[:most]
    counter = Counter(line_bytes=gpu.line_bytes)
    with _interpreting(kernel, counter) as function:
        named = {n: a if n in _constants(kernel) else interpreter._implicit_cvt(a) for n, a in arguments.items()}  # pyright: ignore
        builder: Any = interpreter.interpreter_builder
        builder.set_grid_dim(*whole)
        for number in chosen:  # x runs fastest in dispatch order
            x, rest = number % whole[0], number // whole[0]
            builder.set_grid_idx(x, rest % whole[1], rest // whole[1])
            function(**named)
    return _summed(counter, programs, len(chosen), slots, dies, _storages(arguments))


def _summed(counter: Counter, programs: int, traced: int, slots: int, dies: int, storages: dict[str, float]) -> Trace:
    sizes = sum(storages.values())
    scale = programs / traced
    lines = counter.lines * counter.line_bytes
    shared = _union(counter.touched) * counter.line_bytes
    waves = max(1.0, programs / max(1, slots))
    dies_used = min(dies, programs)
    per_die = min(slots, programs) / dies_used
    l2 = shared * dies_used * waves * per_die / traced if traced < per_die else shared * dies_used * waves
    return Trace(
        programs=programs,
        traced=traced,
        asked_bytes=counter.asked * scale,
        lines_bytes=lines * scale,
        l2_bytes=min(l2, lines * scale),
        unique_bytes=min(sizes, l2, lines * scale) if sizes else min(l2, lines * scale),
        flops={name: value * scale for name, value in counter.flops.items()},
        trips=[float(np.mean(counter.rounds[depth])) for depth in sorted(counter.rounds)],
        storages=storages,
    )


def _union(touched: Iterable[tuple[np.ndarray[Any, Any], float]]) -> float:
    """Return the number of distinct lines, each weighted by the loop iterations that it represents."""
    by_weight: dict[float, list[np.ndarray[Any, Any]]] = defaultdict(list)
    for lines, weight in touched:
        by_weight[weight].append(lines)
    return sum(weight * len(np.unique(np.concatenate(parts))) for weight, parts in by_weight.items())


def _storages(arguments: dict[str, Any]) -> dict[str, float]:
    """Return the size of all tensor arguments of a launch, by storage."""
    storages: dict[str, float] = {}
    for value in arguments.values():
        tensor = getattr(value, "base", value)  # of a descriptor or a reinterpreted tensor
        if hasattr(tensor, "untyped_storage"):
            storages[str(tensor.untyped_storage().data_ptr())] = float(tensor.numel() * tensor.element_size())
    return storages


def _constants(kernel: JITFunction[Any]) -> set[str]:
    return {p.name for p in kernel.params if p.is_constexpr}


@contextlib.contextmanager
def _interpreting(kernel: JITFunction[Any], counter: Counter) -> Generator[Callable[..., Any]]:
    """Return a kernel's function for the counting interpreter."""

    def call(self: JITFunction[Any], *args: Any, **kwargs: Any) -> Any:
        return interpreter.InterpretedFunction(self.fn).rewrite()(*args, **kwargs)

    before = JITFunction.__dict__.get("__call__")
    function = interpreter.InterpretedFunction(kernel.fn).rewrite()
    # both of the language's modules at once: Triton does not restore what a helper patches by itself
    language = FunctionType(function.__code__, {"tl": tl, "core": tl.core})
    scope = interpreter._patch_lang(language)  # pyright: ignore[reportPrivateUsage]
    space: dict[str, Any] = function.__globals__
    kept = space.get("range")
    builder: Any = interpreter.interpreter_builder
    replaced = counter.builder()
    JITFunction.__call__ = call  # pyright: ignore
    try:
        for name, value in replaced.items():
            setattr(builder, name, value)
        for owner in (tl, tl.core):
            owner.reduce, owner.associative_scan = counting_interpreter.reduce, counting_interpreter.scan  # pyright: ignore
        tl.range = space["range"] = counter.range  # pyright: ignore
        yield function
    finally:
        for name in replaced:
            delattr(builder, name)
        if kept is None:
            del space["range"]
        else:
            space["range"] = kept
        scope.restore()
        if before is None:
            del JITFunction.__call__  # pyright: ignore
        else:
            JITFunction.__call__ = before
