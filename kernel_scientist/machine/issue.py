"""What a wave issues to each pipeline: the instructions of a code object, as often as a trace says that they run."""

import functools
import math
import re
from dataclasses import dataclass

from kernel_scientist.machine.traffic import Traffic
from kernel_scientist.records import CodeObject

BITS = re.compile(r" (\d+)$")
SHAPE = re.compile(r"(?:mfma\D*\d*_|MMA\.)(\d+)x(\d+)x(\d+)")
MOST, TOLERANCE = 16, 0.2
"""Rounds that a compiler puts into one at the most, and how near to a power of two the count must lie."""


@dataclass(frozen=True)
class Issue:
    """Cycles that one wave needs of each pipeline, and how its loads are spread over loop rounds."""

    vector: float
    lds: float
    l1: float
    rounds: float
    """Loop rounds in which memory is waited for."""


def issued(code: CodeObject, traffic: Traffic) -> Issue:
    """Return what one wave of a launch issues: the instructions of each loop depth as often as they run."""
    weights = _weights(code, traffic)
    sums = {"vector": 0.0, "lds": 0.0, "l1": 0.0}
    for mix, weight in zip(code.mix, weights, strict=True):
        for name, count in mix.items():
            pipe, cycles = _cycles(name, _wave(code))
            if pipe:
                sums[pipe] += weight * count * cycles
    waits = sum(w for mix, w in zip(code.mix, weights, strict=True) if any(k.startswith("vmem_load") for k in mix))
    return Issue(**sums, rounds=max(1.0, waits))


def _weights(code: CodeObject, traffic: Traffic) -> list[float]:
    """Return how often the code of each loop depth runs.

    A pipelined loop does some of its rounds outside of it, and a compiler may put several rounds into one: what the
    code would do in all, by its rounds as they stand in the source, is held against what the trace counted.
    """
    weights = [1.0]
    for depth in range(1, len(code.mix)):
        rounds = traffic.trips[depth - 1] if depth <= len(traffic.trips) else 1.0
        around, inside = (_flops(code, code.mix[d]) for d in (depth - 1, depth))
        weights.append(weights[-1] * max(1.0, rounds - (around / inside if inside else 0.0)))
    if len(weights) > 1:
        weights[-1] = max(1.0, weights[-1] / _unrolled(code, traffic, weights))
    return weights


def _unrolled(code: CodeObject, traffic: Traffic, weights: list[float]) -> float:
    """Return how many rounds of the innermost loop the compiler put into one: a power of two, or 1 where none fits.

    By the flops of matrix instructions, and without any by the bytes of memory instructions.
    """
    work, counted = (_flops, sum(traffic.flops.values())) if traffic.flops else (_bytes, traffic.asked_bytes)
    inside = work(code, code.mix[-1]) * weights[-1]
    outside = sum(work(code, mix) * weight for mix, weight in zip(code.mix[:-1], weights[:-1], strict=True))
    expected = counted / traffic.programs / code.num_warps - outside
    if inside <= 0 or expected <= 0:
        return 1.0
    times = 2.0 ** round(math.log2(inside / expected))
    fits = abs(inside / expected / times - 1) < TOLERANCE
    return times if 1 < times <= MOST and fits else 1.0


def _bytes(code: CodeObject, mix: dict[str, int]) -> float:
    """Return what the memory instructions of a wave move."""
    bits = sum(n * int(match[1]) for k, n in mix.items() if k.startswith("vmem") and (match := BITS.search(k)))
    return bits / 8 * _wave(code)


def _flops(code: CodeObject, mix: dict[str, int]) -> float:
    """Return what the matrix instructions of a wave compute; one of Hopper's wide ones is four warps' together."""
    total = 0.0
    for name, count in mix.items():
        if (shape := SHAPE.search(name)) is not None:
            m, n, k = (int(x) for x in shape.groups())
            total += count * 2.0 * m * n * k / (4 if "GMMA" in name else 1)
    return total


def _wave(code: CodeObject) -> int:
    return 64 if code.arch.startswith("gfx") else 32


@functools.cache
def _cycles(name: str, wave: int) -> tuple[str, float]:
    """Return which pipeline an instruction class takes, and for how many cycles per wave.

    CDNA3: a SIMD has 16 lanes, so a wave of 64 takes 4 cycles; LDS moves 128 bytes a cycle and L1 64. Hopper: 32 lanes.
    """
    lanes = 16 if wave == 64 else 32
    bits = int(match[1]) if (match := BITS.search(name)) else 0
    kind = name.split(" ")[0]
    if kind in ("valu", "valu_packed"):
        return "vector", wave / lanes
    if kind == "trans":
        return "vector", 4 * wave / lanes
    if kind.startswith("lds"):
        return "lds", max(wave / 32, wave * bits / 8 / 128)
    if kind.startswith("vmem"):
        return "l1", max(wave / 16, wave * bits / 8 / 64)
    if kind == "atomic":
        return "l1", float(wave)
    return "", 0.0
