"""The machine's findings as defects of a kernel's source.

Runs in workers: standard library and numpy only.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kernel_scientist.gpu.machine.defect import (
    EXPLANATIONS,
    OUT_OF_BOUNDS_READ,
    OUT_OF_BOUNDS_WRITE,
    READ_ONLY_WRITE,
    Defect,
    Example,
)
from kernel_scientist.gpu.machine.launch import Fault, Finding
from kernel_scientist.gpu.toolchains.quoted_sources import Sources

Grid = tuple[int, int, int]
DEADLOCK: Final = "deadlock"
WAITS = "waits for a value that no running wave will store: all others have ended or wait as well"
ENDLESS: Final = "endless loop"
IDLE = "loops for ever and reads nothing meanwhile: no other program can end it"
ENDED = "ends itself: an assertion failed, or it came where its compiler saw no way"
KINDS = {
    Fault.READ_OUTSIDE: (OUT_OF_BOUNDS_READ, "reads outside of every tensor"),
    Fault.WRITE_OUTSIDE: (OUT_OF_BOUNDS_WRITE, "writes outside of every tensor"),
    Fault.WRITE_READ_ONLY: (READ_ONLY_WRITE, EXPLANATIONS[READ_ONLY_WRITE]),
    Fault.LDS_OUTSIDE: ("out-of-bounds access of LDS", "uses LDS beyond what the workgroup allocated"),
    Fault.SCRATCH_OUTSIDE: ("out-of-bounds access of scratch", "uses scratch beyond what the kernel allocated"),
    Fault.TRAP: ("trap", ENDED),
    Fault.DEADLOCK: (DEADLOCK, WAITS),
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
        if finding.fault is Fault.DEADLOCK:
            if not finding.address:
                kind, note = ENDLESS, IDLE
            note = f"{note} ({finding.note})" if finding.note else note
            line, text = sources.loop(finding.places, statement.source_line > 0)
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
    """Return the tensor that an address outside of all of them is nearest to, and its offset there in bytes; of a
    deadlock the element that is waited for."""
    if finding.fault in (Fault.LDS_OUTSIDE, Fault.SCRATCH_OUTSIDE):
        return "LDS" if finding.fault is Fault.LDS_OUTSIDE else "scratch", finding.address
    if finding.fault is Fault.DEADLOCK and not finding.address:
        return "the code", 0
    before = [start for start in names if start <= finding.address]
    start = max(before, default=min(names, default=0))
    offset = finding.address - start
    if not names or abs(offset) >= NEAR:
        return "no tensor", 0
    return names[start], offset // _width(finding.statement.mnemonic) if finding.fault is Fault.DEADLOCK else offset


def _width(mnemonic: str) -> int:
    """Return the bytes of what an instruction loads for a lane."""
    return 8 if "x2" in mnemonic else 1 if "byte" in mnemonic else 2 if "short" in mnemonic else 4
