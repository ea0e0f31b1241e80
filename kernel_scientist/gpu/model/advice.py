"""Turns a prediction into advice for the Designer."""

from kernel_scientist.gpu.model.launch import Placement
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.evaluation import CodeObject

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
CLOSE = 0.6
"""Share of the largest limit from which another limit is named as well."""
TAIL = 0.1
"""Idle share of the units from which it is reported."""


def words(gpu: Gpu, code: CodeObject, shape: Placement, limit: str, breakdown: dict[str, float]) -> tuple[str, ...]:
    """Return the limits, largest first, each with a remedy."""
    said = [f"limited by {MEANING[limit]} ({breakdown[limit]:.3g} us)"]
    others = sorted((k for k in breakdown if k in MEANING and k != limit), key=lambda k: -breakdown[k])
    close = [k for k in others if breakdown[k] > CLOSE * breakdown[limit]]
    said += [f"close behind: {MEANING[k]} ({breakdown[k]:.3g} us)" for k in close[:2]]
    return (*said, *_placed(gpu, shape), *_resources(code))


def _placed(gpu: Gpu, shape: Placement) -> list[str]:
    unit, slots = "CUs" if gpu.arch.startswith("gfx") else "SMs", gpu.units * shape.resident
    if shape.programs < gpu.units:
        idle = gpu.units - shape.programs
        return [f"{shape.programs} programs leave {idle} of {gpu.units} {unit} idle: smaller tiles or split-K"]
    if (lost := shape.tail(gpu)) <= TAIL:
        return []
    full = 100 * (shape.programs % slots or slots) / slots
    return [
        f"tail wave: {gpu.units} {unit} holding {shape.resident} programs each, {shape.programs} programs: "
        f"round {shape.rounds} is {full:.0f} % full, {100 * lost:.0f} % of the units' time is lost"
    ]


def _resources(code: CodeObject) -> list[str]:
    said: list[str] = []
    if code.limited_by in ("registers", "lds") and code.occupancy <= 2:
        held = {"registers": f"{code.vgpr + code.agpr} registers", "lds": f"{code.lds_bytes} bytes of LDS"}
        said.append(f"occupancy {code.occupancy} waves per SIMD, held down by {held[code.limited_by]}")
    if code.spills:
        said.append(f"{code.spills} registers spilled: fewer live values, or smaller tiles")
    return said
