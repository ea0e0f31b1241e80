"""What the model needs of a launch, from the counts of the machine that executed workgroups of it.

Every instruction's executions are known, also those that depend on data. The counts come from an untrusted worker: they
can be false, as the time of a GPU's worker could be, and the floor of a case bounds what that gains.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kernel_scientist.gpu.isa import amdgcn
from kernel_scientist.gpu.machine.listing import Statement
from kernel_scientist.gpu.model.issue import BITS, WAVE, Issue, matrix_flops, pipeline_cycles
from kernel_scientist.gpu.model.launch import Amount, Traffic
from kernel_scientist.hardware.gpus import Gpu

MOST_INSTRUCTIONS, MOST_WORKGROUPS, MOST_STORAGES = 1 << 20, 1 << 16, 4096
Count = Annotated[int, Field(ge=0, le=1 << 53)]
Size = Annotated[int, Field(ge=1, le=1 << 31)]
Column = Annotated[tuple[Count, ...], Field(max_length=MOST_INSTRUCTIONS)]
LDS_ATOMIC = 2.0
"""Cycles of an atomic operation in LDS without conflicts: those of an access of 32 bits."""
_OPERANDS = re.compile(r"\d+x\d+x\d+_?(?:\d+b_?)?([a-z]+\d+)")
_TYPES = {"f16": "fp16", "bf8": "fp8", "i8": "int8", "f32": "fp32", "xf32": "tf32", "f64": "fp64"}
"""Names that the table of peaks has for operands of matrix instructions."""


class LaunchCounts(BaseModel):
    """Counts of one launch, as a worker reports them; see `machine.counts` for their meaning and units."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kernel: str
    code: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Digest of the code's instructions (`Listing.digest`)."""
    grid: tuple[Size, Size, Size]
    block: tuple[Size, Size, Size]
    dynamic_lds: Count
    instructions: Column
    """Numbers of the instructions that were executed, in the text; the next six say how often, and what they did."""
    executed: Column
    asked: Column
    lines: Column
    requests: Column
    conflicts: Column
    waits: Column
    source_lines: Column
    """Lines of the submission's file that they belong to; 0 where that is not known. Those of small functions that were
    inlined are the lines that call them (`machine.places`)."""
    callers: Column
    """Lines that call the functions which those lines are in, if they were inlined; 0 in the kernel itself."""
    work: Annotated[tuple[Count, ...], Field(min_length=1, max_length=MOST_WORKGROUPS)]
    storages: Annotated[dict[str, Amount], Field(max_length=MOST_STORAGES)]
    waves: Annotated[int, Field(ge=1, le=1 << 53)]
    steps: Count
    rounds: Count
    reloads: Count
    overlapped: Count
    shared: Count
    alone: Count

    @model_validator(mode="after")
    def _whole(self) -> Self:
        columns = (self.executed, self.asked, self.lines, self.requests, self.conflicts, self.waits)
        places = (self.source_lines, self.callers)
        if any(len(column) != len(self.instructions) for column in (*columns, *places)):
            raise ValueError("columns of different lengths")
        return self

    @property
    def programs(self) -> int:
        """Workgroups of the launch."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def num_warps(self) -> int:
        """Waves of a workgroup."""
        return -(-self.block[0] * self.block[1] * self.block[2] // WAVE)

    def require_of(self, statements: Sequence[Statement]) -> None:
        """Raise ValueError unless every instruction is one of a listing's."""
        if any(n >= len(statements) for n in self.instructions):
            raise ValueError(f"{self.kernel}: counts of instructions that its code does not have")


def issue(counts: LaunchCounts, statements: Sequence[Statement]) -> Issue:
    """Return what an average wave of the sample issued."""
    sums, flops, barriers, spilled = {"vector": 0.0, "lds": 0.0, "l1": 0.0, "stores": 0.0}, 0.0, 0, 0.0
    for executed, pipe, cycles, kind in costs(counts, statements):
        if pipe:
            sums[pipe] += cycles
        sums["stores"] += cycles if kind.startswith("vmem_store") else 0.0
        flops += executed * matrix_flops(kind)
        barriers += executed if kind == "barrier" else 0
        if kind.startswith("scratch") and (bits := BITS.search(kind)):
            spilled += executed * int(bits[1]) / 8 * WAVE
    waves = counts.waves
    return Issue(
        **{pipe: cycles / waves for pipe, cycles in sums.items()},
        flops=flops / waves,
        rounds=max(1.0, (counts.rounds - counts.reloads) / waves),
        barriers=barriers / waves,
        spilled_bytes=spilled / waves,
        reloads=counts.reloads / waves,
        ahead=min(1.0, counts.overlapped / max(1, counts.steps)),
    )


def costs(counts: LaunchCounts, statements: Sequence[Statement]) -> Iterator[tuple[int, str, float, str]]:
    """Yield each executed instruction's executions, its pipeline and the cycles of all of them, its class.

    L1 looks up one line per cycle, so an access to scattered lines takes longer than its bytes do.
    """
    columns = zip(counts.instructions, counts.executed, counts.lines, counts.conflicts, strict=True)
    for number, executed, lines, conflicts in columns:
        one = statements[number]
        kind = amdgcn.classify(one.mnemonic, one.operands).kind
        pipe, cycles = pipeline_cycles(kind)
        if kind == "atomic" and one.mnemonic.startswith("ds_"):
            pipe, cycles = "lds", LDS_ATOMIC
        total = executed * cycles
        if pipe == "l1":
            total = max(total, float(lines))
        elif pipe == "lds":
            total += conflicts
        yield executed, pipe, total, kind


def traffic(counts: LaunchCounts, statements: Sequence[Statement], gpu: Gpu) -> Traffic:
    """Return the traffic of the whole grid, extrapolated from the samples."""
    scale, line_bytes = counts.programs / len(counts.work), gpu.line_bytes
    flops: dict[str, float] = defaultdict(float)
    for number, executed in zip(counts.instructions, counts.executed, strict=True):
        kind = amdgcn.classify(statements[number].mnemonic, "").kind
        if amount := matrix_flops(kind):
            flops[operands(kind)] += executed * amount * scale
    requests = sum(counts.requests) * line_bytes * scale
    l2 = requests * min(1.0, counts.shared / counts.alone) if counts.alone else requests
    sizes = sum(counts.storages.values())
    return Traffic(
        programs=counts.programs,
        asked_bytes=sum(counts.asked) * scale,
        lines_bytes=requests,
        l2_bytes=l2,
        unique_bytes=min(sizes, l2) if sizes else l2,
        flops=dict(flops),
        storages=dict(list(counts.storages.items())[:256]),
        heaviest=max(counts.work) * len(counts.work) / sum(counts.work) if sum(counts.work) else 1.0,
        counted=len(counts.work),
    )


def operands(name: str) -> str:
    """Return the type of a matrix instruction's operands, as the table of peaks names it."""
    found = _OPERANDS.search(name)
    return _TYPES.get(found[1], found[1]) if found else ""
