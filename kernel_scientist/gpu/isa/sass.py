"""Reads NVIDIA machine code, as `disassembly.of_cubin` prints it, into code objects."""

import re

from kernel_scientist.gpu.isa.sass_classes import classify
from kernel_scientist.gpu.isa.tally import Instruction, Tally, plain
from kernel_scientist.hardware import occupancy
from kernel_scientist.records.evaluation import CodeObject
from kernel_scientist.records.kernel import digest

MARK = "Resource usage:"
"""The first words of such a text."""
_USAGE = re.compile(r"^ *Function (\S+?):\n *REG:(\d{1,9}) STACK:(\d{1,9}) SHARED:(\d{1,9})", re.MULTILINE)
_ARCH = re.compile(r"(?:\bEF_CUDA_SM|^\t\.target\s+sm_)(\d{1,4})", re.MULTILINE)
_SECTION = re.compile(r"^\t\.section\t\.text\.([^,\s]+),", re.MULTILINE)
_LABEL = re.compile(r"(\.L\w+):")
_CODE = re.compile(r"\s+/\*([0-9a-f]{4,8})\*/\s+(@!?U?P\w+ )?\s*([A-Z]\w*(?:\.\w+)*)([^;]*);")
_INSTRUCTION_BYTES = 16
_LARGEST_BLOCK = 1024


def read(text: str, num_warps: int, shared_bytes: int) -> list[CodeObject]:
    """Return a code object per kernel. Raises ValueError for a malformed text."""
    arch = _ARCH.search(text)
    usages = _USAGE.findall(text)
    if arch is None or not usages:
        raise ValueError("it does not say the architecture and what each kernel uses: the text is cut off")
    parts = _SECTION.split(text)
    code = dict(zip(parts[1::2], parts[2::2], strict=True))
    if (lost := next((name for name, *_ in usages if name not in code), None)) is not None:
        raise ValueError(f"the code of kernel {lost!r} is missing")
    key, names = digest(text), plain([name for name, *_ in usages])
    return [
        _object(names[name], f"sm_{arch[1]}", key, (int(r), int(stack), int(s)), code[name], num_warps, shared_bytes)
        for name, r, stack, s in usages
    ]


def _object(
    kernel: str, arch: str, key: str, usage: tuple[int, int, int], code: str, num_warps: int, shared_bytes: int
) -> CodeObject:
    registers, stack, shared = usage
    known = occupancy.LIMITS.get(arch)
    reserved = known.lds_reserved if known else 0
    lds = shared_bytes + max(shared - reserved, 0)
    warps = num_warps or _LARGEST_BLOCK // 32
    fit = occupancy.occupancy(arch, warps, registers, 0, lds) if known else (0, "")
    instructions, labels = _body(code)
    if not instructions:
        raise ValueError(f"kernel {kernel!r} has no instructions")
    return CodeObject(
        kernel=kernel,
        arch=arch,
        digest=key,
        num_warps=warps,
        vgpr=registers,
        spills=_stored(instructions),
        scratch_bytes=stack,
        lds_bytes=lds,
        code_bytes=_INSTRUCTION_BYTES * len(instructions),
        occupancy=fit[0],
        limited_by=fit[1],
        **Tally.of(instructions, labels)._asdict(),
    )


def _body(code: str) -> tuple[list[Instruction], dict[str, int]]:
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in code.splitlines():
        if (label := _LABEL.match(line)) is not None:
            labels[label[1]] = len(instructions)
        elif (found := _CODE.match(line)) is not None:
            instructions.append(classify(found[3], found[4], bool(found[2])))
    return instructions, labels


def _stored(instructions: list[Instruction]) -> int:
    """Return the bytes of distinct stores to local memory: spilled registers and per-thread arrays."""
    return sum(int(i.access.split()[1]) // 8 for i in instructions if i.access.startswith("STL "))
