"""Cycles that a wave issues to each pipeline: a code object's instructions, weighted by the trace's loop counts."""

import functools
import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_scientist.gpu.isa.tally import CONFLICT
from kernel_scientist.gpu.model.launch import Traffic
from kernel_scientist.records.evaluation import CodeObject

BITS = re.compile(r" (\d+)$")
SHAPE = re.compile(r"(?:mfma\D*\d*_|MMA\.)(\d+)x(\d+)x(\d+)")
MOST, TOLERANCE = 16, 0.2
"""Maximum unroll factor that is considered, and the allowed relative distance from a power of two."""
PREFETCHED = 0.75
"""Share of an iteration's bytes that the code before the loop must load if the loop is to be a pipelined one."""


@dataclass(frozen=True)
class Issue:
    """What one wave needs of each pipeline, and how often it waits for memory."""

    vector: float
    """Cycles, here and in the next two."""
    lds: float
    l1: float
    flops: float
    """Flops of its matrix instructions: more than the source's if several waves compute the same elements."""
    rounds: float
    """Loop iterations that wait for memory."""
    barriers: float
    spilled_bytes: float
    """Bytes of registers that it stores to scratch memory and loads again."""
    reloads: float
    """Loop iterations that wait for scratch memory."""
    prefetched: bool
    """Whether the loop loads for a later iteration: the code before the loop loads for its first one. On AMD loads end
    in order, so an iteration that waits for scratch memory waits for what it loads ahead, too."""


def issued(code: CodeObject, traffic: Traffic) -> Issue:
    """Return what one wave of a launch issues: the instructions of each loop depth times their executions."""
    weights = _weights(code, traffic)
    levels = list(zip(code.mix, weights, strict=True))
    sums = {"vector": 0.0, "lds": 0.0, "l1": 0.0}
    for mix, weight in levels:
        for name, count in mix.items():
            pipe, cycles = pipeline_cycles(name, _wave(code))
            if pipe:
                sums[pipe] += weight * count * cycles
    return Issue(
        **sums,
        flops=sum(weight * _flops(code, mix) for mix, weight in levels),
        rounds=max(1.0, sum(weight for mix, weight in levels if _loads(mix))),
        barriers=sum(weight * mix.get("barrier", 0) for mix, weight in levels),
        spilled_bytes=sum(weight * _bytes(code, mix, "scratch") for mix, weight in levels),
        reloads=sum(weight for mix, weight in levels if _reloads(mix)),
        prefetched=_prefetched(code),
    )


def _weights(code: CodeObject, traffic: Traffic) -> list[float]:
    """Return how often the code of each loop depth runs.

    A compiler may unroll a loop completely or partly. The work of the code for each possible assignment of the source's
    trip counts is compared with the traced work; the assignment that fits best is used.
    """
    loops = min(len(code.mix) - 1, len(traffic.trips))
    fits = (_by_rounds(code, rounds) for rounds in itertools.combinations(traffic.trips, loops))
    weights = min(fits, key=lambda found: _misfit(code, traffic, found))
    if len(weights) > 1:
        weights[-1] = max(1.0, weights[-1] / _unrolled(code, traffic, weights))
    return weights


def _by_rounds(code: CodeObject, rounds: Sequence[float]) -> list[float]:
    """Return the weights for given trip counts; a pipelined loop does some iterations outside of the loop."""
    weights = [1.0]
    for depth in range(1, len(code.mix)):
        own = rounds[depth - 1] if depth <= len(rounds) else 1.0
        around, inside = (_flops(code, code.mix[d]) for d in (depth - 1, depth))
        weights.append(weights[-1] * max(1.0, own - (around / inside if inside else 0.0)))
    return weights


def _misfit(code: CodeObject, traffic: Traffic, weights: Sequence[float]) -> float:
    """Return the log ratio between the code's work and the traced work; 0 if it is unknown."""
    work, counted = _counted(traffic)
    done = sum(work(code, mix) * weight for mix, weight in zip(code.mix, weights, strict=True))
    expected = counted / traffic.programs / code.num_warps
    return abs(math.log(done / expected)) if done > 0 and expected > 0 else 0.0


def _counted(traffic: Traffic) -> tuple[Callable[[CodeObject, dict[str, int]], float], float]:
    """Return the work that is compared: flops of matrix instructions, else bytes of memory instructions."""
    return (_flops, sum(traffic.flops.values())) if traffic.flops else (_bytes, traffic.asked_bytes)


def _unrolled(code: CodeObject, traffic: Traffic, weights: list[float]) -> float:
    """Return the unroll factor of the innermost loop: a power of two, or 1 if none fits.

    Matrix instructions alone prove nothing: waves of a small tile compute the same elements several times.
    """
    times = 2.0 ** round(math.log2(max(1.0, _excess(code, traffic, weights, *_counted(traffic)))))
    proofs = [_excess(code, traffic, weights, *_counted(traffic))]
    if traffic.flops:
        proofs.append(_excess(code, traffic, weights, _bytes, traffic.asked_bytes))
    fits = all(abs(found / times - 1) < TOLERANCE for found in proofs)
    return times if 1 < times <= MOST and fits else 1.0


def _excess(
    code: CodeObject,
    traffic: Traffic,
    weights: list[float],
    work: Callable[[CodeObject, dict[str, int]], float],
    counted: float,
) -> float:
    """Return the work of the innermost loop over the traced one; 0 if it is unknown."""
    inside = work(code, code.mix[-1]) * weights[-1]
    outside = sum(work(code, mix) * weight for mix, weight in zip(code.mix[:-1], weights[:-1], strict=True))
    expected = counted / traffic.programs / code.num_warps - outside
    return inside / expected if expected > 0 else 0.0


def _loads(mix: dict[str, int]) -> float:
    """Return the bits per lane that a wave loads from memory; at least one for an instruction that moves a tile."""
    found = [(n, match) for k, n in mix.items() if k.startswith("vmem_load") and (match := BITS.search(k))]
    return sum(n * max(1, int(match[1])) for n, match in found)


def _prefetched(code: CodeObject) -> bool:
    if len(code.mix) < 2 or (code.arch.startswith("gfx") and _reloads(code.mix[-1])):
        return False
    return _loads(code.mix[-2]) >= PREFETCHED * _loads(code.mix[-1]) > 0


def _reloads(mix: dict[str, int]) -> bool:
    return any(name.startswith("scratch_load") for name in mix)


def _bytes(code: CodeObject, mix: dict[str, int], kind: str = "vmem") -> float:
    """Return the bytes that a wave's memory instructions move."""
    bits = sum(n * int(match[1]) for k, n in mix.items() if k.startswith(kind) and (match := BITS.search(k)))
    return bits / 8 * _wave(code)


def _flops(code: CodeObject, mix: dict[str, int]) -> float:
    """Return the flops of a wave's matrix instructions; one of Hopper's wgmma belongs to four warps."""
    return sum(count * matrix_flops(name) for name, count in mix.items())


@functools.cache
def matrix_flops(name: str) -> float:
    """Return a matrix instruction's flops per wave; 0 of any other."""
    if (shape := SHAPE.search(name)) is None:
        return 0.0
    m, n, k = (int(x) for x in shape.groups())
    return 2.0 * m * n * k / (4 if "GMMA" in name else 1)


def _wave(code: CodeObject) -> int:
    return 64 if code.arch.startswith("gfx") else 32


@functools.cache
def pipeline_cycles(name: str, wave: int) -> tuple[str, float]:
    """Return the pipeline of an instruction class, and its cycles per wave.

    CDNA3: a SIMD has 16 lanes, so a wave of 64 takes 4 cycles; LDS moves 128 bytes a cycle and L1 64. Hopper: 32 lanes.
    """
    lanes = 16 if wave == 64 else 32
    bits = int(match[1]) if (match := BITS.search(name)) else 0
    kind = name.split(" ")[0]
    if kind in ("valu", "valu_packed"):
        return "vector", wave / lanes
    if kind == "trans":
        return "vector", 4 * wave / lanes
    if kind == CONFLICT:
        return "lds", 1.0
    if kind.startswith("lds"):
        return "lds", max(wave / 32, wave * bits / 8 / 128)
    if kind.startswith(("vmem", "scratch")):
        return "l1", max(wave / 16, wave * bits / 8 / 64)
    if kind == "atomic":
        return "l1", float(wave)
    return "", 0.0
