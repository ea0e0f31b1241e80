"""What a prediction means, in words that a designer can act on."""

from typing import Protocol

from kernel_scientist.machine.gpus import Gpu
from kernel_scientist.records import CodeObject


class Placed(Protocol):
    """How a grid falls onto a GPU (`model.Shape`)."""

    @property
    def programs(self) -> int: ...
    @property
    def resident(self) -> int: ...
    @property
    def busiest(self) -> float: ...
    @property
    def rounds(self) -> int: ...
    def tail(self, gpu: Gpu) -> float: ...


MEANING = {
    "hbm": "main memory's bandwidth: move fewer bytes, or each once",
    "cache": "the last-level cache's bandwidth: let programs on one die share tiles (program order, XCD swizzle)",
    "l2": "L2's bandwidth: larger tiles read each line fewer times; half-used lines cost whole ones",
    "l1": "memory instructions: wider loads along the contiguous dimension",
    "lds": "local memory's bandwidth: wider accesses, another layout, fewer trips through it",
    "matrix": "the matrix units: a wider type, less padding, a fuller last wave",
    "vector": "vector instructions around the matrix units: conversions, addresses, masks, scaling",
    "latency": "latency: more waves per SIMD, more stages, more independent work per program",
    "launch": "the launches themselves: fewer, fused",
}
TAIL = 0.1
"""Idle part of the units from which it is worth a word."""


def words(gpu: Gpu, code: CodeObject, shape: Placed, limit: str, breakdown: dict[str, float]) -> tuple[str, ...]:
    """Return the limits in order of weight, each with what helps."""
    said = [f"limited by {MEANING[limit]} ({breakdown[limit]:.3g} us)"]
    others = sorted((k for k in breakdown if k in MEANING and k != limit), key=lambda k: -breakdown[k])
    close = [k for k in others if breakdown[k] > 0.6 * breakdown[limit]]
    said += [f"close behind: {MEANING[k]} ({breakdown[k]:.3g} us)" for k in close[:2]]
    unit = "CUs" if gpu.arch.startswith("gfx") else "SMs"
    if shape.programs < gpu.units:
        said.append(f"{shape.programs} programs leave {gpu.units - shape.programs} of {gpu.units} {unit} idle: smaller tiles or split-K")
    elif (idle := shape.tail(gpu)) > TAIL:
        last = shape.programs % (gpu.units * shape.resident) or gpu.units * shape.resident
        full = 100 * last / (gpu.units * shape.resident)
        said.append(
            f"tail wave: {gpu.units} {unit} holding {shape.resident} programs each, {shape.programs} programs: "
            f"round {shape.rounds} is {full:.0f} % full, {100 * idle:.0f} % of the units' time is lost"
        )
    if code.limited_by in ("registers", "lds") and code.occupancy <= 2:
        what = f"{code.vgpr + code.agpr} registers" if code.limited_by == "registers" else f"{code.lds_bytes} bytes of LDS"
        said.append(f"occupancy {code.occupancy} waves per SIMD, held down by {what}")
    if code.spills:
        said.append(f"{code.spills} registers spilled: fewer live values, or smaller tiles")
    return tuple(said)
