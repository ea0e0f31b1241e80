"""A performance model of GPU kernels: predicts a time from launches, their code objects and their traffic.

A unit (CU or SM) runs a few programs at a time. One program by itself executes its instructions one after the other and
waits for its loads; a pipelined loop overlaps the two. Each further program that is resident adds only its use of the
busiest pipeline, as in a closed queueing network (asymptotic bounds: Lazowska, Zahorjan, Graham and Sevcik,
Quantitative System Performance, 1984, chapter 5). The device's memory levels are roofs over all units (Williams,
Waterman and Patterson, 2009), and the prediction is a smooth maximum of the units' time and of the roofs. The constants
say by what they were calibrated (`model.constants`). The result is a prediction, never a measurement.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from kernel_scientist.gpu.model import advice
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.gpu.model.issue import Issue, pipeline_cycles
from kernel_scientist.gpu.model.launch import Placement, Traffic
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.peaks import roofline_us
from kernel_scientist.records.evaluation import CodeObject, Prediction
from kernel_scientist.records.gpu import TorchOperation
from kernel_scientist.records.kernel import Work

SIMDS = 4
"""SIMDs of a CU, or schedulers of an SM."""
NOWHERE = "0"
"""Storage of tensors without memory; two such tensors may be different."""
STREAMING = frozenset((
    *("zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "arange"),
    *("zero_", "fill_", "copy_", "__setitem__", "clone", "contiguous", "to", "type", "type_as", "float", "half"),
    *("bfloat16", "int", "long", "reshape", "flatten", "cat", "stack", "pad", "repeat", "expand", "__getitem__"),
    *("add", "sub", "mul", "div", "neg", "relu", "add_", "sub_", "mul_", "div_", "true_divide", "where", "clamp"),
    *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__iadd__", "__isub__"),
    *("__imul__", "__itruediv__", "sum", "mean", "amax", "amin", "transpose", "t", "permute"),
))  # fmt: skip
"""Operations of torch whose time is that of their bytes."""
OVERLAPPED = 0.5
"""Share of a program's time in L1 or in LDS, whichever is shorter, in which its waves also use the other one. Chosen
among 0, 0.25, 0.5 and 0.75 with the published times in view; both halves have their least worst error there."""
LANES, WIDTH = 256, 16
"""Threads of a workgroup, and bytes of each thread: usual values of torch's elementwise kernels."""
BYTES = 0.5
"""Share of a case's compulsory bytes that its launches must move."""


@dataclass(frozen=True)
class KernelLoad:
    """One launch of a submission."""

    code: CodeObject
    traffic: Traffic
    issue: Issue
    """What its waves issue."""


@dataclass(frozen=True)
class Costs:
    """Times of one launch in us, each as if its resource were the only limit; an incomplete last round adds to them."""

    hbm: float
    cache: float
    l2: float
    l1: float
    lds: float
    matrix: float
    vector: float
    latency: float
    """One program of each round by itself: its instructions one after the other, and its waits."""

    @property
    def largest(self) -> str:
        """The name of the resource that takes longest."""
        return max(asdict(self).items(), key=lambda item: item[1])[0]

    def total(self, units: float, norm: float) -> float:
        """Return the smooth maximum of the units' time and of the memory levels shared by all units."""
        return sum(t**norm for t in (units, self.hbm, self.cache, self.l2)) ** (1 / norm)


@dataclass(frozen=True)
class Alone:
    """What one program does one after the other, by itself on a unit, in us."""

    vector: float
    matrix: float
    lds: float
    l1: float
    spills: float
    """Its waits for scratch memory."""
    wait: float
    """Its waits for memory, as far as its instructions do not overlap them."""

    @property
    def us(self) -> float:
        """All of it."""
        return self.own + self.wait

    @property
    def own(self) -> float:
        """All but the waits for memory."""
        return self.vector + self.matrix + self.lds + self.l1 + self.spills


@dataclass(frozen=True)
class CostEstimate:
    """One launch: the costs of its resources, its placement, and its time."""

    costs: Costs
    placement: Placement
    time_us: float
    alone: Alone


def estimate(gpu: Gpu, load: KernelLoad, constants: Constants, found: float = 0.0) -> CostEstimate:
    """Return the time of one launch. `found`: share of its arguments that earlier launches left in a cache."""
    code, traffic, issue = load.code, load.traffic, load.issue
    shape = Placement.of(gpu, code, traffic.programs)
    cycle_us, waves = 1e-3 / gpu.clock_ghz, code.num_warps
    each_simd = waves / SIMDS  # waves of a program per SIMD
    vector = issue.vector * cycle_us / constants.vector
    matrix = _matrix_us(gpu, load) / each_simd / constants.matrix
    shared = {
        "l1": waves * issue.l1 * cycle_us / constants.l1,
        "lds": waves * issue.lds * cycle_us / constants.lds,
    }
    use = {"matrix": each_simd * matrix, "vector": each_simd * vector, **shared}
    rows = math.ceil(each_simd)
    spills = issue.reloads * constants.latency_ns * 1e-3
    own = {**shared, "l1": shared["l1"] - waves * issue.stores * cycle_us / constants.l1}
    shorter = min(own, key=lambda name: own[name])
    own[shorter] *= 1 - OVERLAPPED
    alone = Alone(vector=rows * vector, matrix=rows * matrix, spills=spills, wait=0.0, **own)
    hbm, cache = _memory(gpu, traffic, found)
    wait = _latency_us(traffic, hbm, constants)
    alone = replace(alone, wait=_waits_us(alone.own / issue.rounds, wait, issue))
    spilled = traffic.programs * waves * issue.spilled_bytes
    beyond = spilled * _beyond_l2(gpu, load, shape)
    hbm, cache = (hbm, cache + beyond) if gpu.last_bytes else (hbm + beyond, cache)
    costs = Costs(
        hbm=hbm / (gpu.memory_gbps * constants.hbm) * 1e-3,
        cache=cache / (gpu.last_gbps * constants.cache) * 1e-3 if gpu.last_gbps else 0.0,
        l2=(traffic.lines_bytes + spilled) / (gpu.l2_gbps * constants.l2) * 1e-3,
        **{name: shape.busiest * time for name, time in use.items()},
        latency=shape.rounds * alone.us,
    )
    late = (traffic.heaviest - 1) * alone.us  # the program with most work ends later than an average one
    units = _units_us(shape, alone.us, max(use.values())) + late
    return CostEstimate(costs, shape, constants.start_us + costs.total(units, constants.norm), alone)


def _beyond_l2(gpu: Gpu, load: KernelLoad, shape: Placement) -> float:
    """Return the share of the resident waves' scratch memory that L2 does not hold."""
    waves = min(shape.resident, shape.busiest) * gpu.units * load.code.num_warps
    size = waves * gpu.wave * load.code.scratch_bytes
    return max(0.0, 1 - gpu.l2_bytes * gpu.dies / size) if size else 0.0


def _waits_us(own: float, wait: float, issue: Issue) -> float:
    """Return the waits of a loop whose iterations take `own` without them: for the first load, and for what the
    instructions that come before the wait do not hide of the others."""
    return wait + (issue.rounds - 1) * max(0.0, wait - issue.ahead * own)


def _units_us(shape: Placement, alone: float, busiest_pipe: float) -> float:
    """Return the time of the busiest unit: full rounds of resident programs, and a last one with the rest."""

    def together(programs: float) -> float:
        return max(alone + (programs - 1) * busiest_pipe, programs * busiest_pipe)

    resident = min(shape.resident, math.ceil(shape.busiest))
    full, rest = divmod(shape.busiest, resident)
    return full * together(resident) + (min(1.0, rest) * together(max(1.0, rest)) if rest else 0.0)


def _matrix_us(gpu: Gpu, load: KernelLoad) -> float:
    """Return the time of a program's matrix instructions on a unit whose SIMDs share them."""
    peaks = gpu.peak_gflops
    us = sum(flops / peaks.get(kind, peaks["fp32"]) for kind, flops in load.traffic.flops.items()) * 1e-3
    return us * gpu.units / load.traffic.programs


def _latency_us(traffic: Traffic, hbm: float, constants: Constants) -> float:
    """Return the mean latency of a load: L2's, and more for the share that comes from main memory."""
    far = min(1.0, hbm / traffic.lines_bytes) if traffic.lines_bytes else 0.0
    return (constants.latency_ns + far * constants.memory_ns) * 1e-3


def time_us(gpu: Gpu, loads: Sequence[KernelLoad], constants: Constants) -> float:
    """Return only the predicted time of consecutive launches; used to fit the constants."""
    return _launch_us(loads, constants) + sum(one.time_us for one in _each(gpu, loads, constants))


def _each(gpu: Gpu, loads: Sequence[KernelLoad], constants: Constants) -> list[CostEstimate]:
    traffics = [load.traffic for load in loads]
    return [estimate(gpu, load, constants, _found(gpu, traffics, i)) for i, load in enumerate(loads)]


def _launch_us(loads: Sequence[KernelLoad], constants: Constants) -> float:
    return constants.launch_us + constants.next_us * max(0, len(loads) - 1)


def predict(gpu: Gpu, case: str, work: Work, loads: Sequence[KernelLoad], constants: Constants) -> Prediction:
    """Return the prediction of a case with one or more consecutive launches."""
    each = _each(gpu, loads, constants)
    times = [one.time_us for one in each]
    launch = _launch_us(loads, constants)
    breakdown: dict[str, float] = {n: sum(getattr(one.costs, n) for one in each) for n in Costs.__dataclass_fields__}
    breakdown["launch"] = launch + len(loads) * constants.start_us
    limit = max(breakdown, key=lambda name: breakdown[name])
    longest = times.index(max(times))
    worst = loads[longest]
    roomier = advice.roomier(worst.code)
    saved = max(times) - estimate(gpu, replace(worst, code=roomier), constants).time_us if roomier else 0.0
    gain = saved / (launch + sum(times))
    alone, placement = each[longest].alone, each[longest].placement
    waits = alone.wait / alone.us if alone.us else 0.0
    return Prediction(
        case=case,
        machine=gpu.name,
        time_us=round(launch + sum(times), 3),
        launch_us=round(launch, 3),
        floor_us=round(roofline_us(work, gpu), 3),
        limited_by=limit,
        breakdown_us={name: round(us, 3) for name, us in breakdown.items()},
        words=advice.words(gpu, worst.code, placement, limit, breakdown, gain, waits),
        calibration=constants.kind,
        calibrated=constants.calibrated,
    )


def _shared(gpu: Gpu) -> int:
    """Return the size of the last-level cache, which all dies share."""
    return gpu.last_bytes or gpu.l2_bytes


def _memory(gpu: Gpu, traffic: Traffic, found: float) -> tuple[float, float]:
    """Return bytes from HBM and from the last-level cache.

    Data that do not fit into the last level come from HBM for every L2 request; data `found` there do not come from HBM
    the first time.
    """
    missing = max(0.0, 1 - _shared(gpu) / traffic.unique_bytes) if traffic.unique_bytes else 0.0
    again = max(0.0, traffic.l2_bytes - traffic.unique_bytes) * missing
    return traffic.unique_bytes * (1 - found) + again, traffic.l2_bytes


def _found(gpu: Gpu, traffics: Sequence[Traffic], number: int) -> float:
    """Return the share of a launch's arguments that is in the last level because earlier launches touched them.

    Split-K's partial sums are an example. A storage counts completely if, since it was touched, no more than the
    level's capacity was touched, including the launch itself; otherwise proportionally less.
    """
    mine = dict(traffics[number].storages)
    size, kept, touched = sum(mine.values()), 0.0, 0.0
    for before in reversed(traffics[:number]):
        touched += before.unique_bytes
        both = [name for name in before.storages if name in mine and name != NOWHERE]
        kept += sum(mine.pop(name) for name in both) * min(1.0, _shared(gpu) / max(touched, 1.0))
    return kept / size if size else 0.0


def torch_load(operation: TorchOperation, gpu: Gpu) -> KernelLoad:
    """Return the load of torch's operation, which streams its tensors through memory: each thread moves 16 bytes."""
    moved, waves = sum(operation.storages.values()), LANES // gpu.wave
    code = CodeObject(kernel=f"torch.{operation.name}", arch=gpu.arch, digest="", num_warps=waves, vgpr=32)
    programs = max(1, round(moved / (LANES * WIDTH)))
    bits = 8 * WIDTH // 2  # half of them are loaded, half are stored
    _, moving = pipeline_cycles(f"vmem_load {bits}")
    issue = Issue(vector=2 * WIDTH * pipeline_cycles("valu")[1], l1=2 * moving)
    return KernelLoad(code, Traffic(programs, moved, moved, moved, moved, storages=operation.storages), issue)


def in_order(
    launched: Sequence[KernelLoad], operations: Sequence[TorchOperation], gpu: Gpu, first: int = 0
) -> list[KernelLoad]:
    """Return the loads of launches and of torch's operations among them, in order. `first`: number of the first launch,
    as the operations count them."""
    every = [(n, 1, load) for n, load in enumerate(launched, first)]
    every += [(one.after, 0, torch_load(one, gpu)) for one in operations]
    return [load for *_, load in sorted(every, key=lambda each: each[:2])]


def obstacle(launched: Sequence[KernelLoad], operations: Sequence[TorchOperation], work: Work) -> str:
    """Return why a case with these launches cannot be predicted; empty if it can be."""
    if not launched:
        return "no launch of it was counted, or more than a report holds"
    for one in operations:
        if one.fetches:
            return f"torch's `{one.name}` brings values to the host, which decide what is launched"
        if one.name not in STREAMING:
            return f"the model knows no time of torch's `{one.name}`"
    moved = sum(load.traffic.unique_bytes for load in launched)
    if moved < BYTES * work.bytes:
        return f"its launches move {moved:.3g} bytes of {work.bytes:.3g} that the case needs"
    return ""
