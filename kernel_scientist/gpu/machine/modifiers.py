"""Modifiers after the operands of an instruction: offsets, cache policies, DPP, SDWA, selections of halves.

Source: LLVM, "Syntax of AMDGPU Instruction Modifiers". Runs in workers: standard library only.
"""

import re
from dataclasses import dataclass

SC0, SC1, NT, TO_LDS, OFFEN, IDXEN, CLAMP, BOUND_CTRL, OP_SEL, DPP, SDWA, INDEXED = (1 << bit for bit in range(12))
"""Flags, as in `native/machine.h`."""
_FLAGS = {
    "sc0": SC0, "glc": SC0, "sc1": SC1, "scc": SC1, "nt": NT, "slc": NT, "lds": TO_LDS, "offen": OFFEN, "idxen": IDXEN,
    "clamp": CLAMP,
}  # fmt: skip
SELECTIONS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")
_SDWA = ("dst_sel", "dst_unused", "src0_sel", "src1_sel")
_ROWS = {"row_shl": 0x100, "row_shr": 0x110, "row_ror": 0x120, "row_newbcast": 0x150}
_WAVES = {"wave_shl": 0x130, "wave_rol": 0x134, "wave_shr": 0x138, "wave_ror": 0x13C}
_BROADCASTS = {15: 0x142, 31: 0x143}
_PLAIN = {"row_mirror": 0x140, "row_half_mirror": 0x141}
_TOKEN = re.compile(r'[\w.]+(?::(?:swizzle\((?:[^()"]|"[^"]*")*\)|\[[^\]]*\]|[^\s\[]+))?')
_SWIZZLE = re.compile(r"swizzle\((\w+),?(.*)\)")


class ModifierError(ValueError):
    """A modifier cannot be read, or is not supported."""


@dataclass
class Modifiers:
    """All modifiers of an instruction; each has its default."""

    flags: int = 0
    offset: int = 0
    offset1: int = 0
    dpp: int = -1
    row_mask: int = 15
    bank_mask: int = 15
    sdwa: tuple[int, int, int, int] = (6, 2, 6, 6)
    """What the assembler assumes: whole registers, and the rest of the destination preserved."""
    op_sel: tuple[int, ...] = ()
    op_sel_hi: tuple[int, ...] | None = None
    neg_lo: int = 0
    neg_hi: int = 0
    omod: int = 0
    cbsz: int = 0
    abid: int = 0
    blgp: int = 0


def parse(text: str) -> Modifiers:
    """Return the modifiers that are written so. Raises ModifierError."""
    found = Modifiers()
    for token in _TOKEN.findall(text):
        name, _, value = token.partition(":")
        if not value and name in _FLAGS:
            found.flags |= _FLAGS[name]
        elif not value and name in _PLAIN:
            found.dpp = _PLAIN[name]
        elif not _named(found, name, value):
            raise ModifierError(f"modifier {token!r} is not known")
    return found


def _named(found: Modifiers, name: str, value: str) -> bool:
    """Set a modifier with a value. Returns whether there is one of that name."""
    if name in ("offset", "offset0"):
        found.offset = _swizzle(value) if value.startswith("swizzle") else int(value, 0)
    elif name in ("offset1", "cbsz", "abid", "blgp", "row_mask", "bank_mask", "bitop3"):
        field = "offset1" if name == "bitop3" else name
        setattr(found, field, _bits(_numbers(value)) if value.startswith("[") else int(value, 0))
    elif name in ("op_sel", "op_sel_hi"):
        setattr(found, name, _numbers(value))
    elif name in ("neg_lo", "neg_hi", "neg"):
        setattr(found, "blgp" if name == "neg" else name, _bits(_numbers(value)))
    elif name in ("mul", "div"):
        found.omod = {("mul", "2"): 1, ("mul", "4"): 2, ("div", "2"): 3}[name, value]
    elif name == "bound_ctrl":
        found.flags |= BOUND_CTRL
    elif name in ("fi", "gds"):
        pass  # `fi` is of lanes that are switched off: none are where compilers use it; `gds` is said by the mnemonic
    elif name == "quad_perm":
        found.dpp = sum(n << 2 * place for place, n in enumerate(_numbers(value)))
    elif name in _ROWS:
        found.dpp = _ROWS[name] + int(value)
    elif name in _WAVES:
        found.dpp = _WAVES[name]
    elif name == "row_bcast":
        found.dpp = _BROADCASTS[int(value)]
    elif name in _SDWA:
        words = UNUSED if name == "dst_unused" else SELECTIONS
        parts = [*found.sdwa]
        parts[_SDWA.index(name)] = words.index(value)
        found.sdwa = (parts[0], parts[1], parts[2], parts[3])
        found.flags |= SDWA
    else:
        return False
    return True


def _numbers(value: str) -> tuple[int, ...]:
    return tuple(int(part, 0) for part in value.strip("[]").split(","))


def _bits(values: tuple[int, ...]) -> int:
    return sum(1 << place for place, value in enumerate(values) if value)


def _swizzle(value: str) -> int:
    """Return the 16-bit pattern of `ds_swizzle_b32`."""
    found = _SWIZZLE.match(value)
    if found is None:
        raise ModifierError(f"{value!r} is no pattern of lanes")
    kind, rest = found[1], found[2].strip()
    numbers = [int(part, 0) for part in rest.split(",")] if '"' not in rest else []
    if kind == "QUAD_PERM":
        return 0x8000 | sum(n << 2 * place for place, n in enumerate(numbers))
    if kind == "BITMASK_PERM":
        masks = [0, 0, 0]  # and, or, xor; the text has the highest bit first
        for place, sign in enumerate(reversed(rest.strip(' "'))):
            bit = 1 << place
            masks[0] |= bit if sign in "pi" else 0
            masks[1] |= bit if sign == "1" else 0
            masks[2] |= bit if sign == "i" else 0
        return masks[0] | masks[1] << 5 | masks[2] << 10
    if kind == "BROADCAST":
        size, lane = numbers
        return (32 - size) | lane << 5
    if kind == "SWAP":
        return 0x1F | numbers[0] << 10
    if kind == "REVERSE":
        return 0x1F | (numbers[0] - 1) << 10
    raise ModifierError(f"{value!r} is no pattern of lanes")
