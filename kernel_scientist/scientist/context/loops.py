"""The instruction mix of a code object per loop, with the cycles that a wave needs of each pipeline."""

import re
from collections.abc import Mapping

from kernel_scientist.gpu.model.issue import SHAPE, pipeline_cycles
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.evaluation import CodeObject

MOST_CLASSES = 4
"""Instruction classes that are named per pipeline."""
SIMDS = 4
"""SIMDs of a CU; each has a matrix core."""
NAMES = {"vector": "vector", "matrix": "matrix", "lds": "LDS", "l1": "L1"}
"""Pipelines in the order of the text."""
_TYPES = {"fp8|bf8|f8f6f4": "fp8", "xf32": "tf32", "bf16": "bf16", "f16": "fp16", "i8": "int8", "f64": "fp64"}
"""Type of a peak rate by the name of a matrix instruction; `fp32` for other names."""


def described(gpu: Gpu, code: CodeObject) -> list[str]:
    """Return a line per loop depth, the innermost first; empty if no instruction was counted."""
    lines: list[str] = []
    for depth, mix in reversed([*enumerate(code.mix)]):
        if text := _line(gpu, mix):
            lines.append(f"  {_place(depth, len(code.mix))}: {text}")
    return lines


def _place(depth: int, depths: int) -> str:
    if depth == 0:
        return "outside of loops" if depths > 1 else "no loop"
    return f"per iteration of {'the loop' if depths == 2 else f'loop level {depth}'}"


def _line(gpu: Gpu, mix: Mapping[str, int]) -> str:
    """Return the instructions of each pipeline with their cycles, and the others without."""
    pipes: dict[str, list[tuple[float, str]]] = {name: [] for name in NAMES}
    others: list[tuple[float, str]] = []
    for name, count in mix.items():
        pipe, cycles = _cycles(gpu, name)
        pipes.get(pipe, others).append((count * cycles if pipe in pipes else count, f"{count} {name}"))
    parts = [
        f"{NAMES[pipe]} {sum(cycles for cycles, _ in rows):.0f} cycles ({_largest(rows)})"
        for pipe, rows in pipes.items()
        if rows
    ]
    return "; ".join([*parts, _largest(others)] if others else parts)


def _largest(rows: list[tuple[float, str]]) -> str:
    ordered = [text for _, text in sorted(rows, key=lambda row: -row[0])]
    return ", ".join([*ordered[:MOST_CLASSES], *(["..."] if len(ordered) > MOST_CLASSES else [])])


def _cycles(gpu: Gpu, name: str) -> tuple[str, float]:
    """Return an instruction's pipeline and cycles; AMD's matrix instructions run at the peak rate of their type."""
    shape = SHAPE.search(name)
    if shape is None or not gpu.arch.startswith("gfx"):
        return pipeline_cycles(name, gpu.wave)
    m, n, k = (int(size) for size in shape.groups())
    kind = next((kind for pattern, kind in _TYPES.items() if re.search(pattern, name)), "fp32")
    rate = gpu.peak_gflops[kind] / (gpu.units * SIMDS * gpu.clock_ghz)
    return "matrix", 2 * m * n * k / rate
