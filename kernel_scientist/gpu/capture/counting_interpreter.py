"""A version of Triton's interpreter that counts work: addresses and masks are computed, most values are not.

Loads and floating-point operations return zeros of the right shape, so a program runs quickly. Integers that the
submission itself put into memory (locks, counters, lists of tiles) are read as they are. A branch or a trip count that
depends on a value that is not computed is recorded as a guess. Runs in untrusted processes: imports the standard
library, numpy, torch and triton only.
"""

import contextlib
import ctypes
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.runtime import interpreter as _interpreter_module
from triton.runtime.jit import JITFunction

from kernel_scientist.gpu.capture.fake_device import replaced

SHORT, ROUNDS = 4, 2
"""A loop of at most SHORT iterations is run completely. Of a longer one ROUNDS iterations run and are scaled."""

interpreter: Any = _interpreter_module
MOST_KNOWN = 16 << 20
"""Largest storage whose integers are read, in bytes."""
ALIGNED = 512
"""Bytes to which torch's allocator on GPUs aligns storages. In main memory it is 64."""
MOST_ACCESSES = 20_000
"""Memory accesses of one program after which it is taken for one that waits for another."""
Array = np.ndarray[Any, Any]
Ranges = Iterable[tuple[int, int]]
"""First and last + 1 address of each part of memory."""
GUESS = "guess"
"""Attribute of a handle whose value is not computed."""
LIBRARIES = tuple(str(Path(file).parent) for file in (triton.__file__, np.__file__))
OURS = str(Path(__file__).parents[1])


class EndlessError(Exception):
    """A program does not end while no other program runs."""


@dataclass
class Counter:
    """Bytes, cache lines and flops of the programs so far, including loop iterations that were not run."""

    asked: float = 0.0
    """Bytes of all lanes, masked-off lanes included: the width of the instructions."""
    lines: float = 0.0
    flops: dict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    rounds: dict[int, list[int]] = field(default_factory=lambda: defaultdict[int, list[int]](list))
    """Iteration counts of the loops that were entered, by nesting depth."""
    touched: list[tuple[Array, float]] = field(default_factory=list[tuple[Array, float]])
    """Cache line numbers of every access, and how many accesses of a loop it represents."""
    line_bytes: int = 128
    storages: Sequence[int] = ()
    """First addresses of the arguments' storages, ascending."""
    known: Ranges = ()
    """Memory whose integers are real."""
    atomics: bool = False
    """Whether atomic operations on integers of known memory are done; else their results are guesses."""
    guesses: set[int] = field(default_factory=set[int])
    """Lines of the kernel with a branch or a trip count that depends on a value that is not computed."""
    stored: set[int] = field(default_factory=set[int])
    """An address of each store."""
    accesses: int = 0
    weight: float = 1.0
    depth: int = 0

    @property
    def work(self) -> float:
        """Return the flops of matrix products; bytes if there are none."""
        return sum(self.flops.values()) or self.asked

    def taken(self) -> "Counter":
        """Return the counts so far, and begin anew."""
        counts = replace(self)
        fresh = Counter(line_bytes=self.line_bytes, storages=self.storages, known=self.known, atomics=self.atomics)
        vars(self).update(vars(fresh))
        return counts

    def range(self, *bounds: Any, step: Any = None, **_: Any) -> Iterator[int]:
        """Iterate over a loop."""
        rounds = rounds_of(bounds, step)
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

    def touch(self, pointers: Any, mask: Any, access: str) -> None:
        """Count an access: a `load`, a `store` or an `atomic`."""
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        self.count()
        self.asked += self.weight * pointers.data.size * size
        inside = np.broadcast_to(True if mask is None else mask.data, pointers.data.shape)
        first = int(pointers.data.flat[inside.argmax()]) if inside.any() else 0
        if access == "store" and first:
            self.stored.add(first)
        beyond = next((s % ALIGNED for s in reversed(self.storages) if s <= first), 0)  # 0 on a GPU
        lines = (pointers.data - np.uint64(beyond)) // np.uint64(self.line_bytes)
        if lines.ndim == 2 and len(lines) > 1 and lines[0, 0] == lines[1, 0]:  # contiguous by columns
            lines, inside = lines.T, inside.T
        lines = lines[inside]
        lines = np.unique(lines[np.diff(lines, prepend=~lines[:1]) != 0])  # neighbours first: np.unique takes longest
        self.lines += self.weight * len(lines)
        self.touched.append((lines, self.weight))

    def count(self) -> None:
        """Count an access of the current program. Raises EndlessError after too many."""
        self.accesses += 1
        if self.accesses > MOST_ACCESSES:
            raise EndlessError(
                f"a program makes more than {MOST_ACCESSES} memory accesses; a loop that waits for others?"
            )

    def load(self, pointers: Any, mask: Any, other: Any, *rest: Any, **named: Any) -> Any:
        """Count a load; return real integers or zeros."""
        self.touch(pointers, mask, "load")
        if self._is_known(pointers, mask):
            return _executed("create_masked_load", pointers, mask, other, *rest, **named)
        return _guessed(pointers.data.shape, pointers.get_element_ty())

    def store(self, pointers: Any, value: Any, mask: Any, *_: Any, **__: Any) -> None:
        """Count a store."""
        self.touch(pointers, mask, "store")

    def rmw(self, operation: Any, pointers: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        """Count an atomic operation; do it if its memory is known, else return zeros."""
        self.touch(pointers, mask, "atomic")
        if self.atomics and self._is_known(pointers, mask):
            return _executed("create_atomic_rmw", operation, pointers, value, mask, *rest, **named)
        return _guessed(value.data.shape, value.dtype.scalar)

    def cas(self, pointers: Any, compared: Any, value: Any, *rest: Any, **named: Any) -> Any:
        """Count a compare-and-swap; do it if its memory is known. Else it succeeds, so that every lock is acquired."""
        self.touch(pointers, None, "atomic")
        if self.atomics and self._is_known(pointers, None):
            return _executed("create_atomic_cas", pointers, compared, value, *rest, **named)
        return interpreter.TensorHandle(compared.data, compared.dtype.scalar)

    def _is_known(self, pointers: Any, mask: Any) -> bool:
        """Whether an access reads integers and lies in known memory."""
        kind = pointers.get_element_ty()
        if not kind.is_int():
            return False
        active = pointers.data if mask is None else pointers.data[np.broadcast_to(mask.data, pointers.data.shape)]
        if active.size == 0:
            return True
        low, high = int(active.min()), int(active.max()) + max(1, kind.primitive_bitwidth // 8)
        return any(start <= low and high <= end for start, end in self.known)

    def decide(self, handle: Any) -> None:
        """Note a branch, a trip count or a loop condition that depends on a value that is not computed."""
        if handle.attr.get(GUESS) and (line := _line()):
            self.guess(line)

    def guess(self, line: int) -> None:
        """Record a line of the kernel with such a decision."""
        self.guesses.add(line)

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
        return {**_all_following(), **{f"create_{name}": function for name, function in counted.items()}}


_FLOATING = (
    *("fadd", "fsub", "fmul", "fdiv", "frem", "precise_divf", "fma", "clampf", "fabs"),
    *("minimumf", "maximumf", "minnumf", "maxnumf"),
    *("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "precise_sqrt", "rsqrt", "erf", "floor", "ceil"),
)


def _line() -> int:
    """Return the line of the kernel that asks for a value; 0 if a library does, to see whether there is an argument."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return 0 if frame is None or frame.f_code.co_filename.startswith(LIBRARIES) else frame.f_lineno


def rounds_of(bounds: Sequence[Any], step: Any) -> range:
    """Return the iterations of a loop over `tl.range` or `range`."""
    numbers = [int(b) for b in bounds]
    first, last = numbers[:2] if len(numbers) > 1 else (0, numbers[0])
    third = numbers[2] if len(numbers) > 2 else 1
    return range(first, last, third if step is None else int(step))


_UNFOLLOWED = ("load", "store", "masked_load", "masked_store", "atomic_rmw", "atomic_cas")


def _executed(name: str, *args: Any, **named: Any) -> Any:
    """Do an operation of the builder in earnest."""
    return getattr(interpreter.InterpreterBuilder, name)(interpreter.interpreter_builder, *args, **named)


def _guessed(shape: tuple[int, ...], kind: Any) -> Any:
    """Return zeros that stand for values that are not computed."""
    zeros = np.zeros(shape, dtype=interpreter._get_np_dtype(kind))
    return interpreter.TensorHandle(zeros, kind, {GUESS: True})


def _nothing(*_: Any, **__: Any) -> None: ...


def _first(value: Any, *_: Any, **__: Any) -> Any:
    return value


def _cast(value: Any, kind: Any, *_: Any, **__: Any) -> Any:
    return _guessed(value.data.shape, kind.scalar)


def _following(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operation of the builder whose result is a guess if an operand is one."""
    known = interpreter.TensorHandle

    def operation(*args: Any, **named: Any) -> Any:
        result = original(interpreter.interpreter_builder, *args, **named)
        if any(GUESS in arg.attr for arg in args if type(arg) is known):
            for handle in result if isinstance(result, tuple) else (result,):
                if isinstance(handle, interpreter.TensorHandle):
                    handle.attr[GUESS] = True
        return result

    return operation


def _all_following() -> dict[str, Callable[..., Any]]:
    builder = interpreter.InterpreterBuilder  # not at import: `numerics.install` replaces some of its operations
    names = [name for name in dir(builder) if name.startswith("create_")]
    return {
        name: _following(getattr(builder, name)) for name in names if name.removeprefix("create_") not in _UNFOLLOWED
    }


@contextlib.contextmanager
def counting(function: Callable[..., Any], counter: Counter) -> Generator[None]:
    """Let an interpreted kernel's function be counted, instead of executed, within the context."""
    # both of the language's modules at once: Triton does not restore what a helper patches by itself
    language = FunctionType(function.__code__, {"tl": tl, "core": tl.core})
    scope = interpreter._patch_lang(language)
    space: dict[str, Any] = function.__globals__
    places: list[tuple[Any, str, Any]] = [
        *((interpreter.interpreter_builder, name, value) for name, value in counter.builder().items()),
        *((owner, "reduce", reduce) for owner in (tl, tl.core)),
        *((owner, "associative_scan", _first) for owner in (tl, tl.core)),
        (tl, "range", counter.range),
        *((tl.tensor, name, deciding(counter.decide, getattr(tl.tensor, name))) for name in ("__bool__", "__index__")),
        (JITFunction, "__call__", _called),
        (interpreter.InterpretedFunction, "__call__", _called),
    ]
    ranged = {"range": space["range"]} if "range" in space else {}
    try:
        with replaced(places):
            space["range"] = counter.range
            yield
    finally:
        del space["range"]
        space.update(ranged)
        scope.restore()


@contextlib.contextmanager
def restored(places: Ranges) -> Generator[None]:
    """Put back what the context changes in memory."""
    before = [(start, ctypes.string_at(start, end - start)) for start, end in places]
    try:
        yield
    finally:
        for start, content in before:
            ctypes.memmove(start, content, len(content))


def integers(found: Iterable[Any], unreal: Collection[int]) -> list[tuple[int, int]]:
    """Return the memory of integer tensors, without storages that begin at addresses of `unreal`."""
    storages = [t.untyped_storage() for t in found if not (t.is_floating_point() or t.element_size() == 1)]
    places = {(s.data_ptr(), s.data_ptr() + s.nbytes()) for s in storages if 0 < s.nbytes() <= MOST_KNOWN}
    return sorted(place for place in places if place[0] not in unreal)


def _called(helper: Any, *args: Any, **named: Any) -> Any:
    """Call a device function: Triton would patch its language again."""
    function = helper.fn if isinstance(helper, JITFunction) else helper
    return interpreted(function)(*args, **named)


def interpreted(function: Any) -> Callable[..., Any]:
    """Return what the interpreter executes of a kernel."""
    if isinstance(function, interpreter.InterpretedFunction):
        return function.rewrite()
    return interpreter.InterpretedFunction(function).rewrite()


def deciding(decide: Callable[[Any], None], original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a conversion of a tensor to a Python number that calls `decide` first."""

    def decided(value: Any) -> Any:
        decide(value.handle)
        return original(value)

    return decided


def reduce(values: Any, axis: Any, combine: Any, keep_dims: bool = False, **_: Any) -> Any:
    """Replace a reduction: return the first element along the axis."""
    if isinstance(values, tuple):
        return tuple(reduce(v, axis, combine, keep_dims) for v in values)  # pyright: ignore[reportUnknownVariableType]
    data = values.handle.data
    taken = data.reshape(-1)[0] if axis is None else np.take(data, 0, axis=int(axis))
    if keep_dims:
        taken = np.reshape(taken, (1,) * data.ndim) if axis is None else np.expand_dims(taken, int(axis))
    result = interpreter.ReduceScanOpInterface(axis, combine).to_tensor(taken, values.dtype)
    result.handle.attr |= {key: value for key, value in values.handle.attr.items() if key == GUESS}
    return result
