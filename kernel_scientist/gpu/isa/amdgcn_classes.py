"""Class and width of an AMD instruction by its mnemonic (LLVM's AMDGPU assembler syntax for gfx942 and gfx950)."""

import re

from kernel_scientist.gpu.isa.tally import Instruction

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
    return Instruction("atomic" if _ATOMIC.match(name) else "other")


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
