"""Reads AMD GPU assembly as LLVM prints it (Triton's `amdgcn`, `clang -S`) into code objects.

Resources come from the `.amdgpu_metadata` block, which the loader uses (llvm.org/docs/AMDGPUUsage, Code Object
Metadata). What a wave reserves, and so how many waves fit, comes from the kernel's descriptor (`.amdhsa_kernel`). The
code's size and the split of the registers come from the comments after each function. An instruction's class and width
come from its mnemonic (LLVM's AMDGPU assembler syntax for gfx942 and gfx950).
"""

import re
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BaseModel, Field

from kernel_scientist.gpu.isa.symbols import plain
from kernel_scientist.gpu.isa.tally import Instruction, tally
from kernel_scientist.hardware import occupancy
from kernel_scientist.records.evaluation import CodeObject
from kernel_scientist.records.kernel import digest
from kernel_scientist.records.yaml_text import parse_yaml

_BLOCK = re.compile(r"^\s*\.amdgpu_metadata\s*\n(.*?)^\s*\.end_amdgpu_metadata", re.MULTILINE | re.DOTALL)
_DESCRIPTOR = re.compile(
    r'^[ \t]*\.amdhsa_(?:kernel[ \t]+"?([^\s"]+)|next_free_(vgpr|sgpr)[ \t]+(\d{1,9})[ \t]*$)', re.MULTILINE
)
_SPECIAL = 6
"""Scalar registers beyond `.amdhsa_next_free_sgpr`: VCC, FLAT_SCRATCH, XNACK_MASK (LLVM's getNumExtraSGPRs, gfx9)."""
_LABEL = re.compile(r"([\w.$@]+):(.*)")
_INSTRUCTION = re.compile(r"\s*([a-z]\w*)\b(.*)")
_COMMENT = re.compile(r"\s*; (codeLenInByte|NumVgprs|NumAgprs)\s*[=:]\s*(\d{1,9})\b")
_ARCH = re.compile(r"--(gfx\w+)")
Count = Annotated[int, Field(ge=0, le=1 << 31)]
MATRIX = re.compile(r"v_s?mfma[c]?_")
_ENCODING = re.compile(r"(_(e32|e64|dpp|sdwa|vgprcd))+$")
_TRANSCENDENTAL = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_")
_VECTOR_MEMORY = re.compile(r"(t?buffer|global|flat|scratch)_(load|store)_(lds_)?(\w+)")
_LDS = re.compile(r"ds_(read|load|write|store)(2(?:st64)?|_addtid)?_(\w+)")
_LDS_LANES = re.compile(r"ds_(b?permute|swizzle)_b32")
_SCALAR_LOAD = re.compile(r"s_(?:buffer_|scratch_)?load_dword(?:x(\d+))?$")
_ATOMIC = re.compile(r"(?:t?buffer|global|flat|scratch)_atomic_|ds_")
_JUMP = re.compile(r"s_(c?branch|setpc|swappc|call|endpgm|trap)")
_WAIT = re.compile(r"s_(waitcnt|wait_|sleep)")
_ENDS = ("s_branch", "s_setpc_b64", "s_endpgm")
_WIDTH = re.compile(r"(?:dword|[bui]|format_(?:d16_)?)(?:x?(\d+)|([xyzw]+))?")


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
class FunctionBody:
    """A function's instructions, its labels and the compiler's comments after it."""

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    comments: dict[str, int] = field(default_factory=dict[str, int])
    ended: bool = False


def read(text: str, num_warps: int, shared_bytes: int) -> list[CodeObject]:
    """Return a code object per kernel. Raises ValueError (or yaml.YAMLError, RecursionError) for a malformed text."""
    metadata = _metadata(text)
    arch = _ARCH.search(metadata.target)
    if arch is None:
        raise ValueError(f"the target {metadata.target!r} names no architecture")
    bodies = _bodies(text, {kernel.name for kernel in metadata.kernels})
    if (lost := [k.name for k in metadata.kernels if not (k.name in bodies and bodies[k.name].ended)]) != []:
        raise ValueError(f"the code of kernel {lost[0]!r} is missing or ends in the middle")
    reserved = _reserved(text)
    key, names = digest(text), plain([k.name for k in metadata.kernels])
    return [
        _object(k, bodies[k.name], reserved.get(k.name, {}), arch[1], num_warps, shared_bytes).model_copy(
            update={"kernel": names[k.name], "digest": key}
        )
        for k in metadata.kernels
    ]


def _reserved(text: str) -> dict[str, dict[str, int]]:
    """Return what each kernel's descriptor reserves, `vgpr` and `sgpr`; expressions are left out.

    `vgpr` counts from the first vector to the last accumulation register; `.amdhsa_accum_offset` lies between.
    """
    found, own = dict[str, dict[str, int]](), dict[str, int]()
    for name, kind, number in _DESCRIPTOR.findall(text):
        if name:
            own = found[name] = {}
        else:
            own[kind] = int(number) + (_SPECIAL if kind == "sgpr" else 0)
    return found


def _metadata(text: str) -> Metadata:
    block = _BLOCK.search(text)
    if block is None:
        raise ValueError("no .amdgpu_metadata block: the text is cut off or is not a whole file of AMD assembly")
    return Metadata.model_validate(parse_yaml(block[1].split("\n...")[0]))


def _bodies(text: str, kernels: set[str]) -> dict[str, FunctionBody]:
    """Read each kernel's function from its label to `.Lfunc_end`, and the comments up to the next function."""
    bodies: dict[str, FunctionBody] = {}
    inside, last = None, None
    for line in text.splitlines():
        if inside is not None:
            inside.ended = line.startswith(".Lfunc_end")
            last, inside = (inside, None) if inside.ended else (last, _take(line, inside))
        elif (label := _LABEL.match(line)) is not None:
            last = last if label[1].startswith(".") else None
            if label[1] in kernels:
                inside = bodies[label[1]] = FunctionBody()
        elif last is not None and (comment := _COMMENT.match(line)) is not None:
            last.comments[comment[1]] = int(comment[2])
    return bodies


def _take(line: str, body: FunctionBody) -> FunctionBody:
    code = line.split(";", 1)[0].split("//", 1)[0]
    if (label := _LABEL.match(code)) is not None:
        body.labels[label[1]] = len(body.instructions)
        code = label[2]
    if (found := _INSTRUCTION.match(code)) is not None:
        body.instructions.append(classify(found[1], found[2]))
    return body


def _object(
    kernel: Resources, body: FunctionBody, reserved: dict[str, int], arch: str, num_warps: int, shared_bytes: int
) -> CodeObject:
    agpr = kernel.agpr_count
    vgpr = body.comments.get("NumVgprs", kernel.vgpr_count - agpr if kernel.vgpr_count >= agpr else kernel.vgpr_count)
    warps = num_warps or -(-kernel.workgroup // kernel.wave)
    found = CodeObject(
        kernel=kernel.name,
        arch=arch,
        digest="",
        num_warps=warps,
        vgpr=vgpr,
        agpr=agpr,
        sgpr=kernel.sgpr_count,
        reserved_vgpr=reserved.get("vgpr", 0),
        reserved_sgpr=reserved.get("sgpr", 0),
        spills=kernel.vgpr_spills + kernel.sgpr_spills,
        scratch_bytes=kernel.scratch,
        lds_bytes=kernel.lds + shared_bytes,
        code_bytes=body.comments.get("codeLenInByte", 0),
        **tally(body.instructions, body.labels),
    )
    if arch not in occupancy.LIMITS:
        return found
    fit = occupancy.occupancy(arch, *found.needs)
    return found.model_copy(update={"occupancy": fit.waves, "limited_by": fit.limited_by})


def classify(mnemonic: str, operands: str) -> Instruction:
    """Return an instruction's class; `other` if it is unknown."""
    name = _ENCODING.sub("", mnemonic)
    if name.startswith("v_"):
        return _vector(name)
    if name.startswith("s_"):
        return _scalar(name, operands)
    return _memory(name, operands)


def _vector(name: str) -> Instruction:
    if MATRIX.match(name):
        return Instruction(name, matrix=True)
    if name.startswith("v_pk_"):
        return Instruction("valu_packed")
    return Instruction("trans" if _TRANSCENDENTAL.match(name) else "valu")


def _scalar(name: str, operands: str) -> Instruction:
    if (load := _SCALAR_LOAD.match(name)) is not None:
        bits = 32 * int(load[1] or 1)
        return Instruction(f"smem_load {bits}", access=f"s_load {bits}")
    if _JUMP.match(name):
        target = operands.strip() if "branch" in name else None
        return Instruction("branch", jump=target, falls=name not in _ENDS)
    if name == "s_barrier":
        return Instruction("barrier")
    return Instruction("wait" if _WAIT.match(name) else "salu")


def _memory(name: str, operands: str) -> Instruction:
    if (found := _VECTOR_MEMORY.match(name)) is not None:
        space, way, to_lds, rest = found.groups()
        kind = f"{space}_{way}" + ("_lds" if to_lds or re.search(r"\blds\b", operands) else "")
        memory = "scratch" if space == "scratch" else "vmem"
        return Instruction(f"{memory}_{way} {_bits(rest)}", access=f"{kind} {_bits(rest)}")
    if (found := _LDS.match(name)) is not None:
        way, pair, rest = found.groups()
        way = {"load": "read", "store": "write"}.get(way, way)
        bits = _bits(rest) * (2 if pair and pair.startswith("2") else 1)
        return Instruction(f"lds_{way} {bits}", access=f"ds_{way} {bits}")
    if (found := _LDS_LANES.match(name)) is not None:  # no memory access, but it occupies the LDS crossbar for as long
        return Instruction("lds_read 32", access=f"ds_{found[1]} 32")
    if _ATOMIC.match(name):
        return Instruction("atomic", access=name.replace("_rtn", ""))
    return Instruction("other")


def _bits(suffix: str) -> int:
    """Return the bits per lane of `dwordx4`, `ubyte`, `short_d16_hi`, `b64`, `b64_tr_b8`, `u8_d16`, `format_xyz`."""
    if "byte" in suffix:
        return 8
    if "short" in suffix:
        return 16
    found = _WIDTH.match(suffix)
    if found is None:
        return 32
    number, components = found.groups()
    if components:
        return len(components) * (16 if "d16" in suffix else 32)
    if suffix.startswith("dword"):
        return 32 * int(number or 1)
    return int(number or 32)
