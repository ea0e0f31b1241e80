"""What a Triton launch asks of memory and of the matrix units, found by interpreting some of its programs.

Nothing is computed: loads give zeros and `tl.dot` gives its accumulator, so a launch of any size is traced in a moment.
Of a loop with many rounds two are run and count for all; its trip count is kept. The programs that are traced are those
of one die's share of the first wave, in dispatch order: what they have in common is what its L2 is good for.

Runs in untrusted processes: imports the standard library, numpy, torch and triton.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction

LINE = 128
"""Bytes of a cache line."""
SHORT, ROUNDS = 4, 2
"""A loop of at most SHORT rounds is run whole; of a longer one so many."""


@dataclass
class Trace:
    """Counts of one launch. Bytes and flops are sums over the whole grid, extrapolated from the traced programs."""

    programs: int
    traced: int = 0
    loads_bytes: float = 0.0
    """Requested by loads, lane by lane; `stores_bytes` and `atomics_bytes` likewise."""
    stores_bytes: float = 0.0
    atomics_bytes: float = 0.0
    lines_bytes: float = 0.0
    """Distinct lines of each access, which is what L1 asks L2 for."""
    l2_bytes: float = 0.0
    """Distinct lines of all programs that share an L2 at a time: what L2 asks the memory side for."""
    unique_bytes: float = 0.0
    """Distinct lines of the whole launch, at most the size of the arguments: what memory must move."""
    flops: dict[str, float] = field(default_factory=dict[str, float])
    """Of `tl.dot`, by type of its operands."""
    trips: list[float] = field(default_factory=list[float])
    """Mean rounds of the loops, outermost first, per entry of the loop."""

    def message(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return asdict(self)


@dataclass
class _Counter:
    """What the programs did so far."""

    loads: float = 0.0
    stores: float = 0.0
    atomics: float = 0.0
    lines: float = 0.0
    weight: float = 1.0
    depth: int = 0
    flops: dict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    rounds: dict[int, list[int]] = field(default_factory=lambda: defaultdict[int, list[int]](list))
    touched: list[tuple[np.ndarray[Any, Any], float]] = field(default_factory=list[Any])
    """Line numbers of an access and how many accesses of a loop it stands for."""


def trace(
    kernel: JITFunction[Any], arguments: dict[str, Any], grid: tuple[int, ...], slots: int, dies: int, most: int
) -> Trace:
    """Trace at most `most` programs of a launch on a GPU that runs `slots` at a time on `dies` dies.

    Raises what the kernel raises.
    """
    whole = (*grid, 1, 1)[:3]
    programs = int(np.prod(whole))
    chosen = range(0, min(programs, slots), dies)[:most]
    counter = _Counter()
    with _interpreting(kernel, counter) as function:
        named = {n: a if n in _constants(kernel) else interpreter._implicit_cvt(a) for n, a in arguments.items()}  # pyright: ignore
        builder: Any = interpreter.interpreter_builder
        builder.set_grid_dim(*whole)
        for number in chosen:  # x runs fastest in dispatch order
            x, rest = number % whole[0], number // whole[0]
            builder.set_grid_idx(x, rest % whole[1], rest // whole[1])
            function(**named)
    return _summed(counter, programs, len(chosen), slots, dies, _sizes(arguments))


def _summed(counter: _Counter, programs: int, traced: int, slots: int, dies: int, sizes: float) -> Trace:
    scale = programs / traced
    lines = counter.lines * LINE
    shared = _union(counter.touched) * LINE
    waves = max(1.0, programs / max(1, slots))
    dies_used = min(dies, programs)
    per_die = min(slots, programs) / dies_used
    l2 = shared * dies_used * waves * per_die / traced if traced < per_die else shared * dies_used * waves
    return Trace(
        programs=programs,
        traced=traced,
        loads_bytes=counter.loads * scale,
        stores_bytes=counter.stores * scale,
        atomics_bytes=counter.atomics * scale,
        lines_bytes=lines * scale,
        l2_bytes=min(l2, lines * scale),
        unique_bytes=min(sizes, l2, lines * scale) if sizes else min(l2, lines * scale),
        flops={name: value * scale for name, value in counter.flops.items()},
        trips=[float(np.mean(counter.rounds[depth])) for depth in sorted(counter.rounds)],
    )


def _union(touched: Iterable[tuple[np.ndarray[Any, Any], float]]) -> float:
    """Return how many distinct lines there are, each as often as the loop rounds it stands for."""
    by_weight: dict[float, list[np.ndarray[Any, Any]]] = defaultdict(list)
    for lines, weight in touched:
        by_weight[weight].append(lines)
    return sum(weight * len(np.unique(np.concatenate(parts))) for weight, parts in by_weight.items())


def _sizes(arguments: dict[str, Any]) -> float:
    """Return the size of all tensors among a launch's arguments."""
    storages: dict[int, int] = {}
    for value in arguments.values():
        tensor = getattr(value, "base", value)  # of a descriptor or a reinterpreted tensor
        if hasattr(tensor, "untyped_storage"):
            storages[tensor.untyped_storage().data_ptr()] = tensor.numel() * tensor.element_size()
    return float(sum(storages.values()))


def _constants(kernel: JITFunction[Any]) -> set[str]:
    return {p.name for p in kernel.params if p.is_constexpr}


@contextlib.contextmanager
def _interpreting(kernel: JITFunction[Any], counter: _Counter) -> Generator[Callable[..., Any]]:
    """Return a kernel's function, ready to be called in the interpreter; it counts and does nothing else."""

    def call(self: JITFunction[Any], *args: Any, **kwargs: Any) -> Any:
        return interpreter.InterpretedFunction(self.fn)(*args, **kwargs)

    before = JITFunction.__dict__.get("__call__")
    function = interpreter.InterpretedFunction(kernel.fn).rewrite()
    scope = interpreter._patch_lang(function)  # pyright: ignore[reportPrivateUsage]
    space: dict[str, Any] = function.__globals__
    kept = space.get("range", _counted)
    builder: Any = interpreter.interpreter_builder
    replaced = {name: _recorder(name, counter, builder) for name in _RECORDED}
    JITFunction.__call__ = call  # pyright: ignore
    try:
        for name, value in replaced.items():
            setattr(builder, name, value)
        tl.range = space["range"] = lambda *a, **k: _counted(counter, *a, **k)  # pyright: ignore
        tl.static_assert = lambda *_, **__: None  # pyright: ignore
        yield function
    finally:
        for name in replaced:
            delattr(builder, name)
        if kept is _counted:
            del space["range"]
        else:
            space["range"] = kept
        scope.restore()
        if before is None:
            del JITFunction.__call__  # pyright: ignore
        else:
            JITFunction.__call__ = before


def _counted(counter: _Counter, *bounds: Any, step: Any = None, **_: Any) -> Iterator[int]:
    """Go through a loop: short ones whole, of long ones the first rounds, which count for the rest."""
    numbers = [int(b) for b in bounds]
    first, last = numbers[:2] if len(numbers) > 1 else (0, numbers[0])
    third = numbers[2] if len(numbers) > 2 else 1
    rounds = range(first, last, third if step is None else int(step))
    counter.rounds[counter.depth].append(len(rounds))
    shown = rounds if len(rounds) <= SHORT else rounds[:ROUNDS]
    weight, factor = counter.weight, len(rounds) / max(1, len(shown))
    counter.depth += 1
    try:
        for number in shown:
            counter.weight = weight * factor
            yield number
    finally:
        counter.depth -= 1
        counter.weight = weight


_RECORDED = (
    "create_masked_load",
    "create_masked_store",
    "create_atomic_rmw",
    "create_atomic_cas",
    "create_dot",
    "create_print",
    "create_assert",
    "create_assume",
)


def _recorder(name: str, counter: _Counter, builder: Any) -> Callable[..., Any]:
    """Return what stands for one of the interpreter's operations."""
    handle: Any = interpreter.TensorHandle

    def touch(pointers: Any, mask: Any) -> float:
        active = pointers.data[np.broadcast_to(mask.data, pointers.data.shape)] if mask is not None else pointers.data
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        lines = np.unique(active >> np.uint64(7))
        counter.lines += counter.weight * len(lines)
        counter.touched.append((lines, counter.weight))
        return counter.weight * active.size * size

    def load(pointers: Any, mask: Any, other: Any, *_: Any) -> Any:
        counter.loads += touch(pointers, mask)
        kind = pointers.get_element_ty()
        return handle(np.zeros(pointers.data.shape, dtype=interpreter._get_np_dtype(kind)), kind)  # pyright: ignore

    def store(pointers: Any, value: Any, mask: Any, *_: Any) -> None:
        counter.stores += touch(pointers, mask)

    def rmw(_operation: Any, pointers: Any, value: Any, mask: Any, *_: Any) -> Any:
        counter.atomics += touch(pointers, mask)
        return handle(np.zeros_like(value.data), value.dtype.scalar)

    def cas(pointers: Any, compared: Any, value: Any, *_: Any) -> Any:
        counter.atomics += touch(pointers, None)
        return handle(compared.data, compared.dtype.scalar)

    def dot(a: Any, b: Any, accumulator: Any, *_: Any) -> Any:
        rows, inner = a.data.shape[-2:]
        batch = int(np.prod(a.data.shape[:-2]))
        counter.flops[str(a.dtype.scalar)] += counter.weight * 2.0 * batch * rows * inner * b.data.shape[-1]
        return accumulator

    def nothing(*_: Any, **__: Any) -> None: ...

    known = {"create_masked_load": load, "create_masked_store": store, "create_dot": dot}
    return {**known, "create_atomic_rmw": rmw, "create_atomic_cas": cas}.get(name, nothing)
