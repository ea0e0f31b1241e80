"""The machine's findings as defects of a kernel's source.

Runs in workers: standard library and numpy only.
"""

from collections.abc import Iterable, Mapping

from kernel_scientist.gpu.machine.defect import (
    EXPLANATIONS,
    OUT_OF_BOUNDS_READ,
    OUT_OF_BOUNDS_WRITE,
    READ_ONLY_WRITE,
    Defect,
    Example,
)
from kernel_scientist.gpu.machine.launch import Fault, Finding
from kernel_scientist.gpu.machine.sources import Sources

Grid = tuple[int, int, int]
ENDED = "ends itself: an assertion failed, or it came where its compiler saw no way"
KINDS = {
    Fault.READ_OUTSIDE: (OUT_OF_BOUNDS_READ, "reads outside of every tensor"),
    Fault.WRITE_OUTSIDE: (OUT_OF_BOUNDS_WRITE, "writes outside of every tensor"),
    Fault.WRITE_READ_ONLY: (READ_ONLY_WRITE, EXPLANATIONS[READ_ONLY_WRITE]),
    Fault.LDS_OUTSIDE: ("out-of-bounds access of LDS", "uses LDS beyond what the workgroup allocated"),
    Fault.SCRATCH_OUTSIDE: ("out-of-bounds access of scratch", "uses scratch beyond what the kernel allocated"),
    Fault.TRAP: ("trap", ENDED),
    Fault.JUMP: ("jump outside of the code", "jumps to an address that is no instruction"),
}
NEAR = 1 << 30
"""Bytes within which an address outside of all tensors is said to belong to the nearest one."""


def defects(found: Iterable[tuple[str, Grid, Finding]], names: Mapping[int, str], sources: Sources) -> list[Defect]:
    """Return one defect per kind of finding and source line. `names`: of tensors, by their addresses."""
    result: dict[tuple[str, int, str], Defect] = {}
    for kernel, grid, finding in found:
        if finding.fault not in KINDS:
            continue
        kind, note = KINDS[finding.fault]
        statement, total = finding.statement, grid[0] * grid[1] * grid[2]
        tensor, offset = _nearest(finding, names)
        line, text, _ = sources.told(finding.places)
        caller, calls, called = sources.told(finding.places[finding.small :])
        key = (kind, line, tensor)
        result.setdefault(
            key,
            Defect(
                kind=kind,
                kernel=kernel,
                line=line,
                source=text or f"{statement.mnemonic} {statement.operands}",
                tensor=tensor,
                lanes=finding.times,
                programs=1,
                of_programs=total,
                examples=(Example(finding.group, offset),),
                note=f"{note}: lane {finding.lane} of wave {finding.wave}, {statement.mnemonic}{called}",
                caller=caller if finding.small else 0,
                caller_source=calls if finding.small else "",
            ),
        )
    return list(result.values())


def _nearest(finding: Finding, names: Mapping[int, str]) -> tuple[str, int]:
    """Return the tensor that an address outside of all of them is nearest to, and its offset there in bytes."""
    if finding.fault in (Fault.LDS_OUTSIDE, Fault.SCRATCH_OUTSIDE):
        return "LDS" if finding.fault is Fault.LDS_OUTSIDE else "scratch", finding.address
    before = [start for start in names if start <= finding.address]
    start = max(before, default=min(names, default=0))
    offset = finding.address - start
    return (names[start], offset) if names and abs(offset) < NEAR else ("no tensor", 0)
