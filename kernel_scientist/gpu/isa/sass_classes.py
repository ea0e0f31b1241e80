"""Class and width of an NVIDIA instruction by its SASS mnemonic (CUDA Binary Utilities, instruction set of Hopper)."""

import re

from kernel_scientist.gpu.isa.tally import Instruction

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
    return None


def _arithmetic(name: str) -> str:
    if name in _ATOMIC:
        return "atomic"
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
