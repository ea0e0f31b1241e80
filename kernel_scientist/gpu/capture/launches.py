"""Intercepts every launch of a Triton submission: compiles it, and counts what it would do if that is asked for.

Runs in an untrusted process: imports the standard library, torch, triton, and modules of this package that need no
more.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from torch.overrides import TorchFunctionMode
from triton.compiler import CompiledKernel
from triton.runtime.autotuner import Autotuner, OutOfResources
from triton.runtime.jit import JITFunction

from kernel_scientist.gpu.capture import products, torch_writes
from kernel_scientist.gpu.capture.launch_counter import LaunchCounter, UnknownValuesError
from kernel_scientist.gpu.capture.limits import cpu_seconds
from kernel_scientist.gpu.fake import driver, jit
from kernel_scientist.gpu.fake.facts import Facts
from kernel_scientist.gpu.fake.host_tensors import tensors
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.gpu.machine.dispatch import Grid
from kernel_scientist.gpu.model import predict
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.gpu.model.predict import KernelLoad
from kernel_scientist.gpu.toolchains import disassembly
from kernel_scientist.records.evaluation import CodeObject

TUNING_SHARE = 0.4
"""Share of the time limit that one search of an autotuner may take."""
COUNT_S = 60.0
GLUON = "Gluon"
"""Triton's dialect with explicit layouts."""
NOT_COUNTED = "it was not asked for"
OPTIONS = ("num_warps", "num_stages", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "maxnreg", "num_ctas")
FETCHING = frozenset(("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "cpu", "nonzero"))
"""Operations that bring values to the host."""


@dataclass(frozen=True)
class CapturedKernel:
    """A compiled kernel."""

    number: int
    text: str
    object: CodeObject
    compiled: Any
    """Triton's compiled kernel; referenced here so that its `id` is not reused."""


@dataclass
class LaunchRecorder:
    """The launches so far."""

    facts: Facts
    counter: LaunchCounter | None
    """None: nothing is counted, for a GPU whose code nothing here executes."""
    constants: Constants
    deadline: float
    """On the clock of `time.monotonic()`."""
    counts: bool = False
    """Whether every launch is counted. Those that an autotuner tries are counted anyway."""
    count_s: float = COUNT_S
    """CPU seconds after which one launch is given up."""
    tuning_s: float = float("inf")
    """Seconds that one search of an autotuner may take, if that is less than its share of the time limit."""
    case: str = ""
    unknown: set[int] = field(default_factory=set[int])
    """Addresses of storages whose contents are not real: the case's inputs, and what launches store to."""
    launches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    operations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    codes: dict[int, CapturedKernel] = field(default_factory=dict[int, CapturedKernel])
    missed: list[str] = field(default_factory=list[str])
    functions: list[Any] = field(default_factory=list[Any])
    """The kernels that were launched."""
    timed_out: bool = False
    """Whether the time limit was reached before all launches were seen."""
    _kernels: dict[int, Any] = field(default_factory=dict[int, Any])
    """The function of each compiled kernel, by the compiled kernel's `id`."""
    _products: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    """Types of the operands of each compiled kernel's matrix products, by its `id`."""
    _configurations: int = 0
    _tuned: tuple[str, ...] = ()
    _trying: bool = False
    _tried_us: float = 0.0
    _tuned_until: float = math.inf

    def begin(self, case: str, data: Any) -> None:
        """Begin a case with these inputs."""
        self.case = case
        self.unknown.clear()
        self.unknown |= {tensor.untyped_storage().data_ptr() for tensor in tensors(data)}

    def install(self) -> None:
        """Replace Triton's launch function, its driver and its autotuner's clock."""
        driver.install(self.facts, self._benchmark)
        multiplied = products.recorded()
        compiled: Callable[..., Any] = JITFunction.run  # pyright: ignore[reportUnknownMemberType]
        tuned: Callable[..., Any] = Autotuner.run  # pyright: ignore[reportUnknownMemberType]

        def run(kernel: JITFunction[Any], *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
            multiplied.clear()
            code = compiled(kernel, *args, grid=grid, warmup=True, **options)
            self._kernels[id(code)] = kernel
            self._products.setdefault(id(code), tuple(multiplied))
            if not warmup:
                self._record(kernel, code, args, grid, options)
            return code

        def tune(tuner: Autotuner, *args: Any, **options: Any) -> Any:
            self._configurations = len(tuner.configs) if len(tuner.configs) > 1 else 0
            self._tuned = tunables(tuner.configs)
            share = TUNING_SHARE * (self.deadline - time.monotonic())
            self._tuned_until = time.monotonic() + min(share, self.tuning_s)
            try:
                return tuned(tuner, *args, **options)
            finally:
                self._configurations, self._tuned, self._tuned_until = 0, (), math.inf

        def loaded(code: CompiledKernel) -> None:
            found = self._code(code).object
            code.n_regs, code.n_spills, code.n_max_threads = found.vgpr, found.spills, 1024  # pyright: ignore

        def launcher(code: CompiledKernel, grid: Any) -> Callable[..., None]:
            return lambda *args, **options: self._record(self._kernels[id(code)], code, args, grid, options)

        JITFunction.run = run  # pyright: ignore
        CompiledKernel._init_handles = loaded  # pyright: ignore
        CompiledKernel.__getitem__ = launcher  # pyright: ignore
        Autotuner.run = tune  # pyright: ignore

    def called(self, name: str, storages: dict[str, float], fetches: bool) -> None:
        """Record an operation of torch: the bytes by storage, and whether values come to the host."""
        if self._trying:
            return
        self.operations.append(
            {"case": self.case, "name": name, "after": len(self.launches), "storages": storages, "fetches": fetches}
        )

    def _benchmark(self, call: Callable[[], Any], quantiles: Any = None) -> list[float]:
        """Return the predicted time of a configuration in ms; the autotuner chooses by it."""
        if time.monotonic() > self._tuned_until:
            self.timed_out = True
            self._miss(f"{self.case}: not all of {self._configurations} configurations could be compiled in time")
            return [float("inf")] * 3
        self._trying = True
        try:
            call()
        finally:
            self._trying = False
        return [self._tried_us * 1e-3] * 3

    def _record(self, kernel: Any, compiled: Any, args: tuple[Any, ...], grid: Any, options: dict[str, Any]) -> None:
        bound = jit.bound(kernel, args, options)
        sizes: Any = grid(bound) if callable(grid) else grid
        x, y, z = (int(n) for n in (*sizes, 1, 1)[:3])
        whole: Grid = (x, y, z)
        code = self._code(compiled)
        self.facts.require_grid(code.object.kernel, whole, code.object.num_warps)
        self.functions += [] if any(kernel is one for one in self.functions) else [kernel]
        if 0 in whole:  # Triton launches nothing then
            return
        if self._trying:
            self._tried_us = self._predicted_us(compiled, bound, whole, code.object)
            return
        load, why = self._load(compiled, bound, whole, code.object) if self.counts else (None, NOT_COUNTED)
        stages = int(getattr(compiled.metadata, "num_stages", 1) or 1)
        self.launches.append(
            {
                "case": self.case,
                "kernel": code.object.kernel,
                "grid": whole,
                "num_warps": code.object.num_warps,
                "num_stages": stages,
                "constants": _constants(kernel, bound, compiled.metadata),
                "scalars": _scalars(kernel, bound),
                "code": code.number,
                "autotuned": self._configurations,
                "traffic": asdict(load.traffic) if load else None,
                "issue": asdict(load.issue) if load else None,
                "uncounted": why,
            }
        )

    def keep(self, compiled: Any, tuned: tuple[str, ...] = ()) -> None:
        """Record code without a launch. If its LDS exceeds the limit, a finding says so.

        `tuned`: names of the constants and options that an autotuner chose.
        """
        self.codes[id(compiled)] = CapturedKernel(
            len(self.codes), *_read(compiled, tuned, self._products.get(id(compiled), ())), compiled
        )

    def _code(self, compiled: Any) -> CapturedKernel:
        """Return a kernel's code object. Raises OutOfResources as loading it on the device would."""
        metadata = compiled.metadata
        if excess := self.facts.excess(metadata.name, metadata.num_warps, metadata.shared):
            raise OutOfResources(*excess)
        if id(compiled) not in self.codes:
            self.keep(compiled, self._tuned)
        return self.codes[id(compiled)]

    def _predicted_us(self, compiled: Any, bound: dict[str, Any], grid: Grid, code: CodeObject) -> float:
        """Return the predicted time of a launch that an autotuner tries; infinite if it cannot be predicted."""
        load, why = self._load(compiled, bound, grid, code)
        if load is None or self.counter is None:
            self._miss(f"{self.case}: {code.kernel}: the autotuner's first configuration stands for the best: {why}")
            return math.inf
        return predict.estimate(self.counter.gpu, load, self.constants).time_us

    def _load(
        self, compiled: Any, bound: dict[str, Any], grid: Grid, code: CodeObject
    ) -> tuple[KernelLoad | None, str]:
        """Return what a launch does, or None and why that is not known."""
        if self.counter is None:
            return None, f"nothing here executes code for {self.facts.arch}"
        if code.dialect == GLUON:
            return None, "it is written in Gluon, which is compiled here and not counted"
        try:
            with cpu_seconds(self.count_s, f"counting {code.kernel}"):
                load, written = self.counter.load(compiled, bound, grid, code, self.unknown)
        except UnknownValuesError as error:
            return None, str(error)
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"[:400]
        self.unknown |= set() if self._trying else written
        return load, ""

    def _miss(self, words: str) -> None:
        if words not in self.missed:
            self.missed.append(words)


def tunables(configs: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of the constants and options in which an autotuner's configurations differ."""
    given = [config.all_kwargs() for config in configs]
    names = dict.fromkeys(name for one in given for name in one)
    return tuple(name for name in names if len({str(one.get(name)) for one in given}) > 1)


def _read(compiled: Any, tuned: tuple[str, ...], operands: tuple[str, ...]) -> tuple[str, CodeObject]:
    """Return a compiled kernel's assembly and the code object read from it, with what only the compiler knows."""
    metadata = compiled.metadata
    text = (
        compiled.asm["amdgcn"]
        if "amdgcn" in compiled.asm
        else disassembly.of_cubin(compiled.asm["cubin"], confined=True)
    )
    code = assembly.read(text, metadata.num_warps, metadata.shared)[0]
    given, params = compiled.src.constants, compiled.src.fn.params
    bound = {param.name: given.get((place,)) for place, param in enumerate(params)}
    known = {
        "constants": _constants(compiled.src.fn, bound, metadata),
        "tuned": tuned,
        "dialect": GLUON if compiled.src.fn.is_gluon() else "Triton",
        "operands": operands,
    }
    return text, code.model_copy(update=known)


def _scalars(kernel: Any, bound: dict[str, Any]) -> dict[str, str]:
    given = ((p.name, bound[p.name]) for p in kernel.params if not p.is_constexpr)
    return {name: str(value) for name, value in given if isinstance(value, int | float)}


def _constants(kernel: Any, bound: dict[str, Any], metadata: Any) -> dict[str, str]:
    named = {p.name: str(bound[p.name]) for p in kernel.params if p.is_constexpr}
    options = {n: str(v) for n in OPTIONS if (v := getattr(metadata, n, None)) not in (None, 0)}
    return {**named, **options}


class TorchRecorder(TorchFunctionMode):
    """Records torch's operations between launches within the context: on a GPU each is a kernel of its own.

    Results of operations on storages whose contents are not real are not real either.
    """

    def __init__(self, recorder: LaunchRecorder) -> None:
        super().__init__()
        self._recorder, self._unknown = recorder, recorder.unknown

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name, result = getattr(func, "__name__", ""), func(*args, **kwargs)
        written = torch_writes.written(name, args, kwargs, result)
        read = list(tensors((args[1:] if name in torch_writes.OVERWRITING else args, kwargs)))
        is_unknown = any(one.untyped_storage().data_ptr() in self._unknown for one in read)
        if is_unknown:
            self._unknown.update(one.untyped_storage().data_ptr() for one in written)
        if name in FETCHING and is_unknown:
            self._recorder.called(name, {}, True)
        elif any(one.numel() for one in written):
            moved: dict[str, float] = {}
            for one in (*read, *written):
                place, most = str(one.untyped_storage().data_ptr()), one.untyped_storage().nbytes()
                moved[place] = min(most, moved.get(place, 0.0) + one.numel() * one.element_size())
            self._recorder.called(name, moved, False)
        return result
