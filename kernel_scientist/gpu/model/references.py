"""Predicted times of a problem's reference on a GPU: eager, and as torch.compile would fuse it.

The reference is followed operation by operation on tensors without values. A kernel takes its start and the larger of
its arithmetic and its memory traffic at the model's rates. Eagerly each operation is a kernel. Compiled, what stands
between matrix products, convolutions and attention is fused as far as possible, so torch.compile is hardly predicted
too slow. Both are predictions, never measurements.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from kernel_scientist.gpu.model import constants
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.problems.problem import Problem
from kernel_scientist.problems.trees import tensors
from kernel_scientist.records.evaluation import Bar, geomean
from kernel_scientist.records.kernel import COMPILED, EAGER, Case, Verdict

NOT_KERNELS = ("empty", "new_empty", "detach", "_unsafe_view", "set_", "resize_", "lift_fresh", "_local_scalar_dense")
"""Operations, or beginnings of their names, that launch nothing, besides views."""
OVERWRITES = ("copy_", "fill_", "zero_")
"""Operations that write their first argument without reading it."""
DTYPES = {torch.float64: "fp64", torch.bfloat16: "bf16", torch.float16: "fp16"}


@dataclasses.dataclass
class ReferenceLaunch:
    """One kernel: bytes by storage that it reads and writes, and its flops."""

    reads: dict[int, float]
    writes: dict[int, float]
    flops: float
    dtype: str
    library: bool
    """Whether a library provides it, so that nothing is fused into it."""

    def us(self, gpu: Gpu, known: Constants, alive: set[int]) -> float:
        """Return its time in us. alive: storages that later kernels read, or that are returned."""
        written = sum(size for storage, size in self.writes.items() if storage in alive)
        moved = sum(self.reads.values()) + written
        peak = gpu.peak_gflops.get(self.dtype, gpu.peak_gflops["fp32"]) * known.matrix
        return known.start_us + max(self.flops / peak, moved / (gpu.memory_gbps * known.hbm)) * 1e-3


def predicted(problem: Problem, cases: Sequence[Case], gpu: Gpu) -> list[Bar]:
    """Return the predicted times of the reference, eager and compiled: geometric means over the cases.

    If the reference cannot be followed without values, the bars have no verdict and say so.
    """
    known, times = constants.of(gpu.name), dict[str, list[float]]()
    for case in cases:
        try:
            launches, returned = _followed(problem, case)
        except Exception as error:  # whatever a reference may raise on tensors without values
            reason = f"not predicted: the reference cannot be followed on {case.name}: {type(error).__name__}: {error}"
            return [Bar(name=name, verdict=None, reason=reason[:300]) for name in (EAGER, COMPILED)]
        for name, kernels in ((EAGER, launches), (COMPILED, fused(launches))):
            times.setdefault(name, []).append(time_us(kernels, returned, gpu, known))
    reason = f"predicted by a model of {gpu.name}: each kernel at its rates of arithmetic and memory"
    return [
        Bar(name=name, verdict=Verdict.OK, reason=reason, predicted_us=round(geomean(each), 3))
        for name, each in times.items()
    ]


def time_us(launches: Sequence[ReferenceLaunch], returned: set[int], gpu: Gpu, known: Constants) -> float:
    """Return the time of consecutive kernels in us. returned: storages of the outputs."""
    total, alive = known.launch_us + known.next_us * max(0, len(launches) - 1), set(returned)
    for launch in reversed(launches):
        total += launch.us(gpu, known, alive)
        alive |= set(launch.reads)
    return total


def fused(launches: Iterable[ReferenceLaunch]) -> list[ReferenceLaunch]:
    """Return the kernels that remain if each is fused into the last one that made one of its inputs."""
    kept, maker = list[ReferenceLaunch](), dict[int, int]()
    for one in launches:
        place = max((maker[storage] for storage in one.reads if storage in maker), default=-1)
        if one.library or place < 0 or kept[place].library:
            place = len(kept)
            kept.append(ReferenceLaunch({}, {}, 0.0, one.dtype, one.library))
        into = kept[place]
        into.reads |= {storage: size for storage, size in one.reads.items() if storage not in into.writes}
        into.writes |= one.writes
        into.flops += one.flops
        maker |= dict.fromkeys(one.writes, place)
    return kept


def _followed(problem: Problem, case: Case) -> tuple[list[ReferenceLaunch], set[int]]:
    """Return the kernels of the reference on a case, and the storages of its outputs."""
    apart = dataclasses.replace(problem)  # its module keeps no tensors of ours
    with torch.no_grad(), FakeTensorMode():
        data = apart.generate(case)
        apart.reference(data)  # what it makes once, in its first call
        with _Recorder() as recorder:
            output = apart.reference(data)
    return recorder.launches, {_storage(one) for one in tensors(output)}


class _Recorder(TorchDispatchMode):
    """Records the operations that launch a kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.launches = list[ReferenceLaunch]()
        self.held = list[Any]()
        """Tensors seen so far: a storage that is freed would give its number to another."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and record it."""
        output, packet = func(*args, **(kwargs or {})), func._overloadpacket
        read = args[1:] if packet.__name__ in OVERWRITES else args
        inputs, outputs = tensors((read, kwargs)), tensors(output)
        self.held += [inputs, outputs]
        if func.is_view or not outputs or packet.__name__.startswith(NOT_KERNELS):
            return output
        count = flop_registry.get(packet)
        flops = float(count(*args, **(kwargs or {}), out_val=output)) if count else 0.0
        dtype = DTYPES.get(outputs[0].dtype, "fp32")
        self.launches.append(ReferenceLaunch(_bytes(inputs), _bytes(outputs), flops, dtype, count is not None))
        return output


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]


def _bytes(tensors: Iterable[torch.Tensor]) -> dict[int, float]:
    """Return the bytes of tensors by storage; an expanded one has those of its storage."""
    found = dict[int, float]()
    for one in tensors:
        size = min(one.numel() * one.element_size(), one.untyped_storage().nbytes())
        found[_storage(one)] = max(found.get(_storage(one), 0.0), float(size))
    return found
