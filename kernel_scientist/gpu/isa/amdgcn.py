"""Reads AMD GPU assembly as LLVM prints it (Triton's `amdgcn`, `clang -S`) into code objects.

Resources come from the `.amdgpu_metadata` block, which the loader uses (llvm.org/docs/AMDGPUUsage, Code Object
Metadata). The code's size and the split of the registers come from the comments after each function.
"""

import re
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BaseModel, Field

from kernel_scientist.gpu.isa.amdgcn_classes import classify
from kernel_scientist.gpu.isa.lds_conflicts import ARCHITECTURES, Wave
from kernel_scientist.gpu.isa.tally import Instruction, Tally, plain
from kernel_scientist.hardware import occupancy
from kernel_scientist.records.base import parse_yaml
from kernel_scientist.records.evaluation import CodeObject
from kernel_scientist.records.kernel import digest

_BLOCK = re.compile(r"^\s*\.amdgpu_metadata\s*\n(.*?)^\s*\.end_amdgpu_metadata", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r"([\w.$@]+):(.*)")
_INSTRUCTION = re.compile(r"\s*([a-z]\w*)\b(.*)")
_COMMENT = re.compile(r"\s*; (codeLenInByte|NumVgprs|NumAgprs)\s*[=:]\s*(\d{1,9})\b")
_ARCH = re.compile(r"--(gfx\w+)")
Count = Annotated[int, Field(ge=0, le=1 << 31)]


class Resources(BaseModel):
    """A kernel's resources from its metadata; registers are per lane."""

    name: str = Field(alias=".name")
    vgpr_count: Count = Field(alias=".vgpr_count")
    """Vector registers, accumulation registers included."""
    agpr_count: Count = Field(0, alias=".agpr_count")
    sgpr_count: Count = Field(0, alias=".sgpr_count")
    vgpr_spills: Count = Field(0, alias=".vgpr_spill_count")
    sgpr_spills: Count = Field(0, alias=".sgpr_spill_count")
    scratch: Count = Field(0, alias=".private_segment_fixed_size")
    lds: Count = Field(0, alias=".group_segment_fixed_size")
    workgroup: Annotated[int, Field(ge=1, le=1 << 20)] = Field(1024, alias=".max_flat_workgroup_size")
    wave: Annotated[int, Field(ge=1, le=64)] = Field(64, alias=".wavefront_size")


class Metadata(BaseModel):
    """The metadata of a file of assembly."""

    target: str = Field(alias="amdhsa.target")
    kernels: list[Resources] = Field(alias="amdhsa.kernels")


@dataclass
class Body:
    """A function's instructions, its labels and the compiler's comments after it."""

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    comments: dict[str, int] = field(default_factory=dict[str, int])
    ended: bool = False
    wave: Wave | None = None
    """Executes address arithmetic, where the banks of the LDS are known."""


def read(text: str, num_warps: int, shared_bytes: int) -> list[CodeObject]:
    """Return a code object per kernel. Raises ValueError (or yaml.YAMLError, RecursionError) for a malformed text."""
    metadata = _metadata(text)
    arch = _ARCH.search(metadata.target)
    if arch is None:
        raise ValueError(f"the target {metadata.target!r} names no architecture")
    bodies = _bodies(text, {kernel.name for kernel in metadata.kernels}, arch[1] in ARCHITECTURES)
    if (lost := [k.name for k in metadata.kernels if not (k.name in bodies and bodies[k.name].ended)]) != []:
        raise ValueError(f"the code of kernel {lost[0]!r} is missing or ends in the middle")
    key, names = digest(text), plain([k.name for k in metadata.kernels])
    return [
        _object(k, bodies[k.name], arch[1], key, num_warps, shared_bytes).model_copy(update={"kernel": names[k.name]})
        for k in metadata.kernels
    ]


def _metadata(text: str) -> Metadata:
    block = _BLOCK.search(text)
    if block is None:
        raise ValueError("no .amdgpu_metadata block: the text is cut off or is not a whole file of AMD assembly")
    return Metadata.model_validate(parse_yaml(block[1].split("\n...")[0]))


def _bodies(text: str, kernels: set[str], known_banks: bool) -> dict[str, Body]:
    """Read each kernel's function from its label to `.Lfunc_end`, and the comments up to the next function."""
    bodies: dict[str, Body] = {}
    inside, last = None, None
    for line in text.splitlines():
        if inside is not None:
            inside.ended = line.startswith(".Lfunc_end")
            last, inside = (inside, None) if inside.ended else (last, _take(line, inside))
        elif (label := _LABEL.match(line)) is not None:
            last = last if label[1].startswith(".") else None
            if label[1] in kernels:
                inside = bodies[label[1]] = Body(wave=Wave() if known_banks else None)
        elif last is not None and (comment := _COMMENT.match(line)) is not None:
            last.comments[comment[1]] = int(comment[2])
    return bodies


def _take(line: str, body: Body) -> Body:
    code = line.split(";", 1)[0].split("//", 1)[0]
    if (label := _LABEL.match(code)) is not None:
        body.labels[label[1]] = len(body.instructions)
        code = label[2]
    if (found := _INSTRUCTION.match(code)) is not None:
        conflicts = body.wave.conflicts(found[1], found[2].strip()) if body.wave is not None else 0
        body.instructions.append(classify(found[1], found[2])._replace(conflicts=conflicts))
    return body


def _object(kernel: Resources, body: Body, arch: str, key: str, num_warps: int, shared_bytes: int) -> CodeObject:
    agpr = kernel.agpr_count
    vgpr = body.comments.get("NumVgprs", kernel.vgpr_count - agpr if kernel.vgpr_count >= agpr else kernel.vgpr_count)
    warps = num_warps or -(-kernel.workgroup // kernel.wave)
    lds = kernel.lds + shared_bytes
    known = arch in occupancy.LIMITS
    fit = occupancy.occupancy(arch, warps, vgpr, agpr, lds) if known else (0, "")
    return CodeObject(
        kernel=kernel.name,
        arch=arch,
        digest=key,
        num_warps=warps,
        vgpr=vgpr,
        agpr=agpr,
        sgpr=kernel.sgpr_count,
        spills=kernel.vgpr_spills + kernel.sgpr_spills,
        scratch_bytes=kernel.scratch,
        lds_bytes=lds,
        code_bytes=body.comments.get("codeLenInByte", 0),
        occupancy=fit[0],
        limited_by=fit[1],
        **Tally.of(body.instructions, body.labels)._asdict(),
    )
