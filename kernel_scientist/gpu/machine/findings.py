"""What checking runs found, as defects of a kernel's source.

Runs in workers: standard library and numpy only.
"""

from collections.abc import Callable, Mapping
from typing import Final

from kernel_scientist.gpu.machine.checking import Checked, Checks, Tensor
from kernel_scientist.gpu.machine.defect import (
    EXPLANATIONS,
    OUT_OF_BOUNDS_READ,
    OUT_OF_BOUNDS_WRITE,
    READ_ONLY_WRITE,
    UNINITIALISED_READ,
    WRITE_RACE,
    Defect,
    Example,
)
from kernel_scientist.gpu.machine.defects import DEADLOCK, ENDED, ENDLESS, IDLE, WAITS
from kernel_scientist.gpu.machine.shadow import FALSE_ASSUMPTION, NOBODY, Cause, FaultRecord, Reach
from kernel_scientist.gpu.toolchains.quoted_sources import Sources

ASSUMPTION: Final = "false assumption"
"""That of Triton's `tl.assume`."""
BARRIER_MISMATCH: Final = "barrier mismatch"
KINDS = {
    Cause.UNSET_REGISTER: UNINITIALISED_READ,
    Cause.UNSET_LDS: UNINITIALISED_READ,
    Cause.UNSET_SCRATCH: UNINITIALISED_READ,
    Cause.UNSET_MEMORY: UNINITIALISED_READ,
    Cause.RACE_READ: WRITE_RACE,
    Cause.RACE_WRITE: WRITE_RACE,
    Cause.READ_OUTSIDE: OUT_OF_BOUNDS_READ,
    Cause.WRITE_OUTSIDE: OUT_OF_BOUNDS_WRITE,
    Cause.WRITE_READ_ONLY: READ_ONLY_WRITE,
    Cause.LDS_OUTSIDE: "out-of-bounds access of LDS",
    Cause.SCRATCH_OUTSIDE: "out-of-bounds access of scratch",
    Cause.JUMP: "jump outside of the code",
    Cause.BARRIERS: BARRIER_MISMATCH,
    Cause.DEADLOCK: DEADLOCK,
    Cause.TRAP: "trap",
}
PLAIN = {
    Cause.WRITE_READ_ONLY: EXPLANATIONS[READ_ONLY_WRITE],
    Cause.SCRATCH_OUTSIDE: "uses scratch beyond what the kernel allocated",
    Cause.JUMP: "jumps to an address that is no instruction",
    Cause.TRAP: ENDED,
}
ONCE = "loops for ever and reads nothing meanwhile; this was read before it, perhaps by a load that the compiler moved"
UNSET = {
    Cause.UNSET_REGISTER: "uses what has no value here: a variable that is not set, or LDS that without a barrier "
    "nothing can have filled",
    Cause.UNSET_LDS: "reads LDS that nothing in the workgroup has written",
    Cause.UNSET_SCRATCH: "reads a local array where nothing was written",
    Cause.UNSET_MEMORY: "reads what nothing has written",
}
DEPENDS = {Reach.ADDRESS: "an address depends on it", Reach.BRANCH: "a branch depends on it"}
WRAPS = tuple(size << 32 for size in (1, 2, 4, 8, 16))
"""By how many bytes an offset is wrong whose index, or which itself, left the range of 32 bits."""


def defects(checks: Checks, sources: Sources) -> list[Defect]:
    """Return one defect per kind, tensor and source line, of all launches that were checked."""
    result = dict[tuple[str, int, str], Defect]()
    for record in checks.records():
        if record.cause in KINDS and (found := _defect(record, checks.launched[record.launch], sources)) is not None:
            result.setdefault((found.kind, found.line, found.tensor), found)
    waiting = {line for kind, line, tensor in result if kind == DEADLOCK and tensor != "LDS"}
    result = {key: one for key, one in result.items() if key[0] != DEADLOCK or key[1] not in waiting or key[2] != "LDS"}
    raced = {(line, tensor) for kind, line, tensor in result if kind == WRITE_RACE}
    # In another order of waves what is read may not have been written yet: the same mistake.
    return [one for key, one in result.items() if one.kind != UNINITIALISED_READ or key[1:] not in raced]


def _defect(record: FaultRecord, checked: Checked, sources: Sources) -> Defect | None:
    statement = checked.launch.code.listing.statements[record.instruction]
    lines, instruction = checked.launch.code.lines, _shown(record, checked)
    chain, small = lines.chain(instruction), lines.small(instruction)
    (line, text, _), (caller, calls, called) = sources.told(chain), sources.told(chain[small:])
    if record.cause is Cause.DEADLOCK:
        line, text = sources.loop(chain, statement.source_line > 0)
    if record.cause is Cause.BARRIERS and record.other and _line(record.other[0], checked, sources) == line:
        return None  # the compiler made two barriers of one
    tensor, element = _place(record, checked.tensors)
    columns, rows, layers = checked.launch.grid
    group = (record.group % columns, record.group // columns % rows, record.group // columns // rows)
    assumed = statement.mnemonic == "s_trap" and statement.operands.strip() == str(FALSE_ASSUMPTION)
    idle = record.cause is Cause.DEADLOCK and not record.address
    note = (
        "the condition is false, and the compiler may take it to be true"
        if assumed
        else _note(record, checked, sources)
    )
    return Defect(
        kind=ASSUMPTION if assumed else ENDLESS if idle else KINDS[record.cause],
        kernel=checked.launch.code.names[checked.launch.name],
        line=line,
        source=text or f"{statement.mnemonic} {statement.operands}",
        tensor=tensor,
        lanes=record.lanes,
        programs=min(record.groups, columns * rows * layers),
        of_programs=columns * rows * layers,
        examples=(Example(group, element),),
        note=f"{note}; first in lane {record.lane} of wave {record.wave}{called}",
        caller=caller if small else 0,
        caller_source=calls if small else "",
    )


def _shown(record: FaultRecord, checked: Checked) -> int:
    """Return the instruction whose line is reported: of a load that the compiler moved, and that has no line, the one
    that depends on what it loads."""
    known = checked.launch.code.lines.known
    moved = _depends(record) and not known(record.instruction) and known(record.reached_at)
    return record.reached_at if moved else record.instruction


def _depends(record: FaultRecord) -> bool:
    """Return whether it is known which instruction depends on an undefined value: the host's code may do so as well."""
    return record.reach in DEPENDS and record.reached_at != NOBODY


def _line(instruction: int, checked: Checked, sources: Sources) -> int:
    return sources.quoted(*checked.launch.code.lines.at(instruction))[0]


def _place(record: FaultRecord, tensors: Mapping[int, Tensor]) -> tuple[str, int]:
    """Return what was accessed, and which element of it: in LDS and in unknown memory which byte."""
    if record.cause in (Cause.UNSET_LDS, Cause.LDS_OUTSIDE) or (record.start == 0 and record.address >> 32 == LDS):
        return "LDS", record.address & 0xFFFFFFFF
    if record.cause in (Cause.UNSET_SCRATCH, Cause.SCRATCH_OUTSIDE):
        return "scratch", record.address & 0xFFFFFFFF
    if record.cause in (Cause.UNSET_REGISTER, Cause.BARRIERS, Cause.JUMP, Cause.TRAP):
        return "registers" if record.cause is Cause.UNSET_REGISTER else "the code", 0
    if record.cause is Cause.DEADLOCK and not record.address:
        return "the code", 0
    start = record.start or max((s for s in tensors if s <= record.address), default=0)
    known = tensors.get(start)
    if known is None or (not record.start and record.address >= start + known.bytes):
        return "no tensor", 0
    return known.name, (record.address - start) // known.element_bytes


LDS = 0x7FFF0001
"""Upper half of addresses of LDS, as in `native/machine.h`."""


def _note(record: FaultRecord, checked: Checked, sources: Sources) -> str:
    cause = record.cause

    def name(instruction: int) -> int:
        return _line(instruction, checked, sources)

    if cause in UNSET or cause in (Cause.RACE_READ, Cause.RACE_WRITE):
        said = UNSET[cause] if cause in UNSET else _race(record, name)
        depends = DEPENDS.get(record.reach, "the result depends on it")
        known = _depends(record) and name(record.reached_at) != name(_shown(record, checked))
        return f"{said}, and {depends}" + (f" in line {name(record.reached_at)}" if known else "")
    if cause in (Cause.READ_OUTSIDE, Cause.WRITE_OUTSIDE):
        return _outside(record, checked)
    if cause is Cause.LDS_OUTSIDE:
        return f"uses byte {record.address} of LDS, of which the workgroup has {checked.launch.lds_bytes}"
    if cause is Cause.BARRIERS:
        assert record.other is not None
        return f"some waves wait at this barrier while others wait at that in line {name(record.other[0])}"
    if cause is Cause.DEADLOCK:
        said = IDLE if not record.address else WAITS if record.other is None else ONCE
        return f"{said} ({checked.note})" if checked.note else said
    return PLAIN[cause]


def _race(record: FaultRecord, name: Callable[[int], int]) -> str:
    does = "reads what" if record.cause is Cause.RACE_READ else "stores where"
    if record.other is None:
        return f"{does} another wave stores"
    instruction, lane, wave, group = record.other
    line = name(instruction)
    if group == record.group and wave == record.wave:
        return f"lanes {record.lane} and {lane} of one instruction store different values at one address"
    if group == record.group:
        who = f"wave {wave}" if wave < NO_WAVE else "several waves"
        return f"{does} line {line} stores in {who} of the same workgroup, with no barrier between them"
    whose = f"workgroup {group}" if group < NO_WAVE else "several workgroups"
    return f"{does} line {line} stores in {whose}, with no release and acquire between them"


NO_WAVE = 0xFFFFFFFF


def _outside(record: FaultRecord, checked: Checked) -> str:
    verb = "reads" if record.cause is Cause.READ_OUTSIDE else "writes"
    known = checked.tensors.get(record.start)
    if known is None:
        gone = next((one for start, one in checked.tensors.items() if 0 <= record.address - start < one.bytes), None)
        return f"{verb} outside of every tensor" + (f": {gone.name} was freed before this launch" if gone else "")
    offset, count = record.address - record.start, known.bytes // known.element_bytes
    element = offset // known.element_bytes
    if 0 <= offset < known.bytes:
        return f"{verb} element {element} by a negative offset from its pointer: a buffer instruction does not reach it"
    said = f"{verb} element {element} of {known.name}, which has {count}"
    for wrap in WRAPS:
        for right in (offset + wrap, offset - wrap):
            if 0 <= right < known.bytes:
                return f"{said}: 32-bit arithmetic overflowed, element {right // known.element_bytes} was meant"
    of, all_ = record.groups, checked.launch.groups
    if element < 0:
        return f"{said}: an index is negative, for want of a guard or because 32-bit arithmetic overflowed"
    return said + (
        f"; {of} of {all_} workgroups do: a mask or guard is missing or wrong at the edge" if of < all_ else ""
    )
