"""A version of Triton's interpreter that counts work: addresses and masks are computed, values are not.

Loads and floating-point operations return zeros of the right shape, so a program runs quickly. Runs in untrusted
processes: imports the standard library, numpy and triton only.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from triton.runtime import interpreter as _interpreter_module

SHORT, ROUNDS = 4, 2
"""A loop of at most SHORT iterations is run completely. Of a longer one ROUNDS iterations run and are scaled."""

interpreter: Any = _interpreter_module
Lines = np.ndarray[Any, Any]


@dataclass
class Counter:
    """Bytes, cache lines and flops of the programs so far, including loop iterations that were not run."""

    asked: float = 0.0
    """Bytes of all lanes, masked-off lanes included: the width of the instructions."""
    lines: float = 0.0
    flops: dict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    rounds: dict[int, list[int]] = field(default_factory=lambda: defaultdict[int, list[int]](list))
    """Iteration counts of the loops that were entered, by nesting depth."""
    touched: list[tuple[Lines, float]] = field(default_factory=list[tuple[Lines, float]])
    """Cache line numbers of every access, and how many accesses of a loop it represents."""
    line_bytes: int = 128
    weight: float = 1.0
    depth: int = 0

    def range(self, *bounds: Any, step: Any = None, **_: Any) -> Iterator[int]:
        """Iterate over a loop."""
        numbers = [int(b) for b in bounds]
        first, last = numbers[:2] if len(numbers) > 1 else (0, numbers[0])
        third = numbers[2] if len(numbers) > 2 else 1
        rounds = range(first, last, third if step is None else int(step))
        self.rounds[self.depth].append(len(rounds))
        shown = rounds if len(rounds) <= SHORT else rounds[:ROUNDS]
        weight, factor = self.weight, len(rounds) / max(1, len(shown))
        self.depth += 1
        try:
            for number in shown:
                self.weight = weight * factor
                yield number
        finally:
            self.depth -= 1
            self.weight = weight

    def touch(self, pointers: Any, mask: Any) -> None:
        """Count an access."""
        active = pointers.data
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        self.asked += self.weight * active.size * size
        if mask is not None:
            active = active[np.broadcast_to(mask.data, active.shape)]
        lines = np.unique(active // np.uint64(self.line_bytes))
        self.lines += self.weight * len(lines)
        self.touched.append((lines, self.weight))

    def load(self, pointers: Any, mask: Any, other: Any, *_: Any, **__: Any) -> Any:
        """Count a load; return zeros."""
        self.touch(pointers, mask)
        return _zeros(pointers.data.shape, pointers.get_element_ty())

    def store(self, pointers: Any, value: Any, mask: Any, *_: Any, **__: Any) -> None:
        """Count a store."""
        self.touch(pointers, mask)

    def rmw(self, operation: Any, pointers: Any, value: Any, mask: Any, *_: Any, **__: Any) -> Any:
        """Count an atomic operation; return zeros."""
        self.touch(pointers, mask)
        return _zeros(value.data.shape, value.dtype.scalar)

    def cas(self, pointers: Any, compared: Any, value: Any, *_: Any, **__: Any) -> Any:
        """Count a compare-and-swap. It always succeeds; otherwise a lock would never be acquired."""
        self.touch(pointers, None)
        return interpreter.TensorHandle(compared.data, compared.dtype.scalar)

    def dot(self, a: Any, b: Any, accumulator: Any, *_: Any, **__: Any) -> Any:
        """Count the flops of a matrix product; return the accumulator."""
        rows, inner = a.data.shape[-2:]
        batch = int(np.prod(a.data.shape[:-2]))
        self.flops[str(a.dtype.scalar)] += self.weight * 2.0 * batch * rows * inner * b.data.shape[-1]
        return accumulator

    def builder(self) -> dict[str, Callable[..., Any]]:
        """Return the replacements of the builder's operations, by name."""
        counted = {"masked_load": self.load, "masked_store": self.store, "dot": self.dot}
        counted |= {"atomic_rmw": self.rmw, "atomic_cas": self.cas}
        counted |= dict.fromkeys(("print", "assert", "assume"), _nothing)
        counted |= dict.fromkeys(("fp_ext", "fp_trunc", "fp_to_fp", "si_to_fp", "ui_to_fp"), _cast)
        counted |= dict.fromkeys(_FLOATING, _first)
        return {f"create_{name}": function for name, function in counted.items()}


_FLOATING = (
    *("fadd", "fsub", "fmul", "fdiv", "frem", "precise_divf", "fma", "clampf", "fabs"),
    *("minimumf", "maximumf", "minnumf", "maxnumf"),
    *("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "precise_sqrt", "rsqrt", "erf", "floor", "ceil"),
)


def _zeros(shape: tuple[int, ...], kind: Any) -> Any:
    return interpreter.TensorHandle(np.zeros(shape, dtype=interpreter._get_np_dtype(kind)), kind)


def _nothing(*_: Any, **__: Any) -> None: ...


def _first(value: Any, *_: Any, **__: Any) -> Any:
    return value


def _cast(value: Any, kind: Any, *_: Any, **__: Any) -> Any:
    return _zeros(value.data.shape, kind.scalar)


def reduce(values: Any, axis: Any, combine: Any, keep_dims: bool = False, **_: Any) -> Any:
    """Replace a reduction: return the first element along the axis."""
    if isinstance(values, tuple):
        return tuple(reduce(v, axis, combine, keep_dims) for v in values)  # pyright: ignore[reportUnknownVariableType]
    data = values.handle.data
    taken = data.reshape(-1)[0] if axis is None else np.take(data, 0, axis=int(axis))
    if keep_dims:
        taken = np.reshape(taken, (1,) * data.ndim) if axis is None else np.expand_dims(taken, int(axis))
    return interpreter.ReduceScanOpInterface(axis, combine).to_tensor(taken, values.dtype)


def scan(values: Any, *_: Any, **__: Any) -> Any:
    """Replace a scan."""
    return values
