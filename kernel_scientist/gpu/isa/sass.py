"""Reads NVIDIA machine code, as `disassembly.of_cubin` prints it, into code objects.

Source of the mnemonics: CUDA Binary Utilities, instruction set of Hopper.
"""

import re

from kernel_scientist.gpu.isa.symbols import plain
from kernel_scientist.gpu.isa.tally import Instruction, tally
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
_MATRIX = re.compile(r"[A-Z]+MMA$")
_GLOBAL = {"LDG": "load", "LD": "load", "LDL": "load", "LDGSTS": "load", "STG": "store", "ST": "store", "STL": "store"}
_SHARED = {"LDS": "read", "LDSM": "read", "STS": "write", "STSM": "write"}
_BULK = {"UTMALDG": "load", "UTMASTG": "store", "UBLKCP": "load"}
_ATOMIC = {"ATOM", "ATOMG", "ATOMS", "RED", "REDG", "UTMAREDG", "REDUX"}
_WAIT = {"DEPBAR", "LDGDEPBAR", "WARPGROUP", "WARPSYNC", "SYNCS", "UTMACMDFLUSH", "MEMBAR", "FENCE", "NANOSLEEP"}
_BRANCH = {"BRA", "BRX", "JMP", "EXIT", "RET", "CALL", "BSSY", "BSYNC", "BREAK", "KILL", "BPT", "YIELD", "WARPEXIT"}
_JUMPS = {"BRA", "JMP"}
_ENDS = {"BRA", "JMP", "BRX", "EXIT", "RET", "KILL"}
_PACKED = {"HFMA2", "HADD2", "HMUL2", "HMNMX2", "HSET2", "HSETP2"}
_UNIFORM = {"UMOV", "ULDC", "S2UR", "R2UR", "CS2UR", "VOTEU"}
_TARGET = re.compile(r"`\(([^)]*)\)")


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
    fit = occupancy.occupancy(arch, warps, registers, lds) if known else (0, "")
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
        **tally(instructions, labels),
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


def classify(mnemonic: str, operands: str, guarded: bool) -> Instruction:
    """Return an instruction's class. `guarded`: it has a predicate, so it may do nothing."""
    name, *modifiers = mnemonic.split(".")
    if _MATRIX.match(name):
        return Instruction(mnemonic, matrix=True)
    if name in _BRANCH:
        target = _TARGET.search(operands) if name in _JUMPS else None
        conditional = guarded or operands.lstrip().startswith(("P", "!P", "UP", "!UP"))
        return Instruction("branch", jump=target[1] if target else None, falls=name not in _ENDS or conditional)
    return _memory(name, modifiers) or Instruction(_arithmetic(name))


def _memory(name: str, modifiers: list[str]) -> Instruction | None:
    if name in _GLOBAL:
        bits = _bits(modifiers)
        return Instruction(f"vmem_{_GLOBAL[name]} {bits}", access=f"{name} {bits}")
    if name in _SHARED:
        bits = _matrices(modifiers) if name.endswith("M") else _bits(modifiers)
        return Instruction(f"lds_{_SHARED[name]} {bits}", access=f"{name} {bits}")
    if name in _BULK:  # one instruction moves a whole tile; the code does not contain its size
        return Instruction(f"vmem_{_BULK[name]} 0", access=f"{name} 0")
    if name == "LDC":
        bits = _bits(modifiers)
        return Instruction(f"smem_load {bits}", access=f"{name} {bits}")
    return Instruction("atomic", access=name) if name in _ATOMIC else None


def _arithmetic(name: str) -> str:
    if name == "BAR":
        return "barrier"
    if name in _WAIT:
        return "wait"
    if name == "MUFU":
        return "trans"
    if name in _PACKED:
        return "valu_packed"
    if name == "NOP":
        return "other"
    return "salu" if name in _UNIFORM or re.match(r"U[A-Z]", name) else "valu"


def _bits(modifiers: list[str]) -> int:
    """Return the bits per lane from an access's modifiers such as `E.128`, `U8`, `S16`; 32 by default."""
    for modifier in modifiers:
        if modifier in ("64", "96", "128"):
            return int(modifier)
        if modifier in ("U8", "S8", "U16", "S16"):
            return int(modifier[1:])
    return 32


def _matrices(modifiers: list[str]) -> int:
    """Return the bits per lane of LDSM and STSM: 32 for each 8x8 matrix of 16-bit elements."""
    return 32 * next((int(m) for m in modifiers if m in ("2", "4")), 1)
