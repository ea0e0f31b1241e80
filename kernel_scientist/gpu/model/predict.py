"""A performance model of GPU kernels: predicts a time from launches, their code objects and their traffic.

For each resource the model computes the time that the kernel would take if this were the only limit. The prediction is
a smooth maximum of these times, because resources overlap imperfectly. It is a roofline (Williams, Waterman and
Patterson, 2009) with one roof per memory level and pipeline, plus the tail of the last wave and the latency that too
few waves leave exposed. The constants can be calibrated on a GPU (`model.constants`). The result is a prediction, never
a measurement.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_scientist.gpu.model import advice
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.gpu.model.issue import Issue, issued
from kernel_scientist.gpu.model.launch import Placement, Traffic
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.peaks import floor_us
from kernel_scientist.records.evaluation import CodeObject, Prediction
from kernel_scientist.records.kernel import Work

SIMDS = 4
"""SIMDs of a CU, or schedulers of an SM."""
NOWHERE = "0"
"""Storage of tensors without memory; two such tensors may be different."""


@dataclass(frozen=True)
class Load:
    """One launch of a submission."""

    code: CodeObject
    traffic: Traffic
    stages: int = 1


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

    def total(self, norm: float) -> float:
        """Return the smooth maximum."""
        return sum(t**norm for t in vars(self).values()) ** (1 / norm)


def costs(gpu: Gpu, load: Load, constants: Constants, found: float = 0.0) -> tuple[Costs, Placement]:
    """Return the costs of one launch. `found`: share of its arguments that earlier launches left in a cache."""
    code, traffic = load.code, load.traffic
    shape = Placement.of(gpu, code, traffic.programs)
    cycle_us = 1e-3 / gpu.clock_ghz
    issue = issued(code, traffic)
    waves = shape.busiest * code.num_warps
    simds = min(SIMDS, code.num_warps * min(shape.resident, math.ceil(shape.busiest)))
    per_simd = waves / simds
    hbm, cache = _memory(gpu, traffic, found)
    busy = shape.busiest * gpu.units / traffic.programs  # the tail lengthens the time of per-unit resources
    matrix_us = sum(f / _peak(gpu, name, code) for name, f in traffic.flops.items()) * 1e-3
    serial = shape.rounds * _serial(gpu, issue, load.stages, constants) * cycle_us
    return Costs(
        hbm=hbm / (gpu.memory_gbps * constants.hbm) * 1e-3,
        cache=cache / (gpu.last_gbps * constants.cache) * 1e-3 if gpu.last_gbps else 0.0,
        l2=traffic.lines_bytes / (gpu.l2_gbps * constants.l2) * 1e-3,
        l1=waves * issue.l1 * cycle_us / constants.l1,
        lds=waves * issue.lds * cycle_us / constants.lds,
        matrix=matrix_us * busy * SIMDS / simds / constants.matrix,
        vector=per_simd * issue.vector * cycle_us / constants.vector,
        latency=serial,
    ), shape


def time_us(gpu: Gpu, loads: Sequence[Load], constants: Constants) -> float:
    """Return only the predicted time of consecutive launches; used to fit the constants."""
    return _launch_us(loads, constants) + sum(cost.total(constants.norm) for cost, _ in _each(gpu, loads, constants))


def _each(gpu: Gpu, loads: Sequence[Load], constants: Constants) -> list[tuple[Costs, Placement]]:
    traffics = [load.traffic for load in loads]
    return [costs(gpu, load, constants, _found(gpu, traffics, i)) for i, load in enumerate(loads)]


def _launch_us(loads: Sequence[Load], constants: Constants) -> float:
    return constants.launch_us + constants.next_us * max(0, len(loads) - 1)


def predict(gpu: Gpu, case: str, work: Work, loads: Sequence[Load], constants: Constants) -> Prediction:
    """Return the prediction of a case with one or more consecutive launches."""
    each = _each(gpu, loads, constants)
    times = [cost.total(constants.norm) for cost, _ in each]
    launch = _launch_us(loads, constants)
    breakdown: dict[str, float] = {n: sum(getattr(c, n) for c, _ in each) for n in Costs.__dataclass_fields__}
    breakdown["launch"] = launch
    limit = max(breakdown, key=lambda name: breakdown[name])
    longest = times.index(max(times))
    return Prediction(
        case=case,
        machine=gpu.name,
        time_us=round(launch + sum(times), 3),
        floor_us=round(floor_us(work, gpu), 3),
        limited_by=limit,
        breakdown_us={name: round(us, 3) for name, us in breakdown.items()},
        words=advice.words(gpu, loads[longest].code, each[longest][1], limit, breakdown),
        calibrated=constants.calibrated,
    )


def _serial(gpu: Gpu, issue: Issue, stages: int, constants: Constants) -> float:
    """Return the cycles of a program by itself: issue cycles and exposed memory latency.

    A pipelined loop requests data `stages` - 1 iterations ahead, so an iteration takes at least the latency divided by
    that; without a pipeline it waits for the whole latency.
    """
    own = issue.vector + issue.lds + issue.l1
    latency = constants.latency_ns * gpu.clock_ghz
    if stages < 2:
        return latency + latency * issue.rounds + own
    return latency + max(own, latency * issue.rounds / (stages - 1))


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


def _peak(gpu: Gpu, operand: str, code: CodeObject) -> float:
    """Return the matrix peak in GFLOP/s for `tl.dot` operands, in the type in which the code multiplies them."""
    names = " ".join(code.mfma).lower()
    if operand.startswith("fp8") and not re.search(r"fp8|bf8|f8|e4m3|e5m2|qgmma", names):
        operand = "fp16"
    kind = "fp8" if operand.startswith("fp8") else operand
    kind = "tf32" if kind == "fp32" and re.search(r"tf32|xf32", names) else kind
    return gpu.peak_gflops.get(kind, gpu.peak_gflops["fp32"])
