"""What the waves of a launch issue to each pipeline, and the cycles of a class of instructions."""

import functools
import re
from typing import Annotated

import pydantic
from pydantic import ConfigDict, Field

BITS = re.compile(r" (\d+)$")
SHAPE = re.compile(r"mfma\D*\d*_(\d+)x(\d+)x(\d+)")
WAVE = 64
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@pydantic.dataclasses.dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Issue:
    """What one wave needs of each pipeline, and how often it waits for memory."""

    vector: Amount = 0.0
    """Cycles, here and in the next two."""
    lds: Amount = 0.0
    l1: Amount = 0.0
    stores: Amount = 0.0
    """Cycles of L1 that stores take: a wave does not wait for them."""
    flops: Amount = 0.0
    """Flops of its matrix instructions: more than the source's if several waves compute the same elements."""
    rounds: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0
    """Loop iterations that wait for memory."""
    barriers: Amount = 0.0
    spilled_bytes: Amount = 0.0
    """Bytes of registers that it stores to scratch memory and loads again."""
    reloads: Amount = 0.0
    """Loop iterations that wait for scratch memory."""
    ahead: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of an iteration's instructions that come between a load and the wait for it: near 1 in a loop that loads
    for its next iteration."""


BLOCKS = re.compile(r"_(\d+)b(?:_|$)")
"""Number of products of this shape that an instruction computes, as in `v_mfma_f32_4x4x4_16b_f16`."""


@functools.cache
def matrix_flops(name: str) -> float:
    """Return a matrix instruction's flops per wave; 0 of any other."""
    if (shape := SHAPE.search(name)) is None:
        return 0.0
    m, n, k = (int(x) for x in shape.groups())
    blocks = int(several[1]) if (several := BLOCKS.search(name)) else 1
    return 2.0 * m * n * k * blocks


@functools.cache
def pipeline_cycles(name: str) -> tuple[str, float]:
    """Return the pipeline of an instruction class, and its cycles per wave.

    CDNA3: a SIMD has 16 lanes, so a wave of 64 takes 4 cycles; LDS moves 128 bytes a cycle and L1 64.
    """
    bits = int(match[1]) if (match := BITS.search(name)) else 0
    kind = name.split(" ")[0]
    if kind in ("valu", "valu_packed"):
        return "vector", WAVE / 16
    if kind == "trans":
        return "vector", WAVE / 4
    if kind.startswith("lds"):
        return "lds", max(WAVE / 32, WAVE * bits / 8 / 128)
    if kind.startswith(("vmem", "scratch")):
        return "l1", max(WAVE / 16, WAVE * bits / 8 / 64)
    if kind == "atomic":
        return "l1", float(WAVE)
    return "", 0.0
