"""Turns a prediction into advice for the Designer."""

from kernel_scientist.gpu.model.launch import Placement
from kernel_scientist.hardware import occupancy
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.evaluation import CodeObject

MEANING = {
    "hbm": "main memory's bandwidth: move fewer bytes, or each once",
    "cache": "the last-level cache's bandwidth: let programs that read the same lines run on one die (program order)",
    "l2": "L2's bandwidth: read each line once and use it whole, half-used lines cost whole ones",
    "l1": "memory instructions: wider loads along the contiguous dimension",
    "lds": "local memory's bandwidth: wider accesses, another layout, fewer trips through it",
    "matrix": "the matrix units: a narrower type where the tolerance allows it, less padding, a fuller last wave",
    "vector": "vector instructions: conversions, addresses, masks, functions; what a loop repeats belongs before it",
    "latency": "what a program does one after the other: more programs per CU, fewer rounds",
    "launch": "the launches themselves: fewer, fused",
}
WAITING = (
    "what a program does one after the other (waits for memory are {:.0f} % of it)"
    ": more programs per CU, loads ahead of use, fewer rounds"
)
"""`latency` where waits count."""
OF_PRODUCTS = {
    "cache": "the last-level cache's bandwidth: let programs on one die share tiles (program order, XCD swizzle)",
    "l2": "L2's bandwidth: larger tiles read each line fewer times; half-used lines cost whole ones",
    "vector": "vector instructions around the matrix units: conversions, addresses, masks, scaling",
}
"""What differs where the kernel multiplies matrices."""
CLOSE = 0.6
"""Share of the largest limit from which another limit is named as well."""
WORTH = 0.02
"""Share of the time that one more workgroup must save to be named."""
WAITS = 0.05
"""Share of a program's time from which its waits for memory are worth a remedy."""
TAIL = 0.1
"""Idle share of the units from which it is reported."""


def words(
    gpu: Gpu, code: CodeObject, shape: Placement, limit: str, breakdown: dict[str, float], gain: float, waits: float
) -> tuple[str, ...]:
    """Return the limits, largest first, each with a remedy.

    `gain`: share of the time that `roomier` code saves. `waits`: share of a program's own time in which it waits.
    """
    meaning = MEANING | OF_PRODUCTS if code.mfma else MEANING
    if waits >= WAITS:
        meaning = {**meaning, "latency": WAITING.format(100 * waits)}
    said = [f"limited by {meaning[limit]} ({breakdown[limit]:.3g} us)"]
    others = sorted((k for k in breakdown if k in meaning and k != limit), key=lambda k: -breakdown[k])
    close = [k for k in others if breakdown[k] > CLOSE * breakdown[limit]]
    said += [f"close behind: {meaning[k]} ({breakdown[k]:.3g} us)" for k in close[:2]]
    return (*said, *_placed(gpu, shape, bool(code.mfma)), *_resources(code, gain))


def _placed(gpu: Gpu, shape: Placement, multiplies: bool) -> list[str]:
    unit, slots = "CUs" if gpu.arch.startswith("gfx") else "SMs", gpu.units * shape.resident
    if shape.programs < gpu.units:
        idle = gpu.units - shape.programs
        more = "smaller tiles or split-K" if multiplies else "smaller tiles, or several programs for one row or output"
        leave = "1 program leaves" if shape.programs == 1 else f"{shape.programs} programs leave"
        return [f"{leave} {idle} of {gpu.units} {unit} idle: {more}"]
    if (lost := shape.tail(gpu)) <= TAIL:
        return []
    full = 100 * (shape.programs % slots or slots) / slots
    return [
        f"tail wave: {gpu.units} {unit} holding {shape.resident} program{'s' if shape.resident > 1 else ''} each, "
        f"{shape.programs} programs: "
        f"round {shape.rounds} is {full:.0f} % full, {100 * lost:.0f} % of the units' time is lost"
    ]


def roomier(code: CodeObject) -> CodeObject | None:
    """Return the code with as many registers and as much LDS as let one more workgroup in; None if nothing does."""
    most = occupancy.for_one_more(code.arch, *code.needs)
    if most is None:
        return None
    registers = {} if code.registers <= most[0] else {"vgpr": most[0], "agpr": 0, "reserved_vgpr": 0}
    return code.model_copy(update={**registers, "lds_bytes": min(code.lds_bytes, most[1])})


def _resources(code: CodeObject, gain: float) -> list[str]:
    said: list[str] = []
    more = roomier(code)
    if gain > WORTH and more is not None:
        unused = code.used <= more.registers < code.registers
        what = "registers reserved (`waves_per_eu`)" if unused else "registers"
        held = {what: (more.registers, code.registers)}
        held["bytes of LDS"] = (more.lds_bytes, code.lds_bytes)
        needs = " and ".join(f"{new} {what} instead of {old}" for what, (new, old) in held.items() if new < old)
        percent = 100 * gain / (1 - gain)
        said.append(f"{needs} would let one more workgroup into a CU: a gain of {percent:.0f} % at best")
    if code.spills:
        said.append(f"{code.spills} registers spilled: fewer live values, or smaller tiles")
    return said
