"""What an instruction reads and writes, by register, and which unit executes it.

Registers are numbers: v0 to v255, then a0 to a255, then scalar registers from `SCALAR` on. An instruction that cannot
be read has no registers. Source: LLVM, "Syntax of AMDGPU Instructions", gfx9 and gfx940. Standard library only.
"""

import functools
import re
from dataclasses import dataclass
from enum import Enum

from kernel_scientist.gpu.machine import operands as operand
from kernel_scientist.gpu.machine.operands import Kind

SCALAR = 512
"""Number of s0."""
VCC, M0, EXEC = (SCALAR + operand.SCALARS[name] for name in ("vcc", "m0", "exec"))
_NAMES = {VCC: "vcc", VCC + 1: "vcc", M0: "m0", EXEC: "exec", EXEC + 1: "exec"}


class Unit(Enum):
    """Who executes an instruction."""

    VECTOR = "vector"
    MATRIX = "matrix"
    SCALAR = "scalar"
    MEMORY = "memory"
    """Buffer, global and scratch accesses: they return in order, stores as well."""
    FLAT = "flat"
    LDS = "lds"
    SCALAR_MEMORY = "scalar memory"
    CONTROL = "control"
    """Waits, branches, barriers and what concerns no register."""


Span = range
"""The registers of an operand; empty for what is no register."""


@dataclass(frozen=True)
class Effect:
    """What an instruction reads and writes."""

    name: str
    """Without the encoding."""
    unit: Unit
    operands: tuple[Span, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    modifiers: frozenset[str] = frozenset()
    to_lds: bool = False
    """Whether it loads from memory to LDS."""

    @property
    def writes_lds(self) -> bool:
        """Return whether it is an LDS instruction that changes memory."""
        return self.unit is Unit.LDS and not _LANES.match(self.name) and not self.name.startswith("ds_read")

    @property
    def reads_lds(self) -> bool:
        """Return whether it returns what lies in LDS."""
        return self.unit is Unit.LDS and bool(self.writes) and not _LANES.match(self.name)

    @property
    def stored(self) -> Span:
        """Return the registers that a vector memory instruction stores, or exchanges with 64 bits of memory."""
        swaps = self.name.endswith("_atomic_cmpswap_x2")
        if self.unit not in (Unit.MEMORY, Unit.FLAT) or not (swaps or "_store_" in self.name):
            return range(0)
        place = 0 if self.name.startswith(("buffer", "tbuffer")) else 1 + bool(self.writes)
        return self.operands[place] if place < len(self.operands) else range(0)


_ENCODING = re.compile(r"(?:_(?:e32|e64|dpp|sdwa|vgprcd|gfx9))+$")
_LAST = re.compile(r"(?:\[[^\]]*\]|\([^)]*\)|\|[^|]*\||[^\s\[(|])+")
_CONTROL = re.compile(
    r"s_(?:waitcnt|nop|setprio|icache|sleep|barrier|endpgm|code_end|sethalt|sendmsg|trap|inst_prefetch|branch|cbranch|"
    r"incperflevel|decperflevel|ttrace|set_gpr_idx_(?:off|mode)|wakeup|version|clause)"
)
_SCALAR_MEMORY = re.compile(r"s_(?:load|buffer_|store|scratch_|atomic|mem(?:real)?time|dcache)")
_LANES = re.compile(r"ds_(?:b?permute|swizzle|nop)")
_LDS_RETURNS = re.compile(r"ds_(?:read|b?permute|swizzle|consume|append|ordered)|ds_\w+_rtn")
_NONE = re.compile(r"s_(?:cmp|bitcmp|setreg|setpc|rfe|set_gpr_idx|cbranch)|v_(?:nop|clrexcp)")
"""Instructions of the scalar and vector units that write no operand."""
_TWO = re.compile(r"v_(?:(?:add|sub|subrev|addc|subb|subbrev)_co_|div_scale|mad_[ui]64|swap_)")
_KEEPS = re.compile(r"v_(?:(?:pk_)?fmac|mac_|dot\d+c|writelane|smfmac|swap|movrel)|s_(?:cmov|addk|mulk|bitset)")
"""Instructions that read what they write to."""
_READS_VCC = re.compile(r"v_div_fmas")


@functools.lru_cache(maxsize=1 << 16)
def of(mnemonic: str, text: str) -> Effect:
    """Return the effect of an instruction as it is written."""
    name = _ENCODING.sub("", mnemonic)
    unit = _unit(name)
    if unit is Unit.CONTROL:
        return Effect(name, unit, (), (), (), frozenset((text,)))
    parts = operand.split(text) if text else []
    tail = ""
    if parts and (found := _LAST.match(parts[-1])) is not None:
        parts[-1], tail = found[0], parts[-1][found.end() :]
    modifiers = frozenset(tail.split())
    spans = tuple(_span(part) for part in parts)
    memory = unit in (Unit.MEMORY, Unit.FLAT)
    to_lds = memory and ("lds" in modifiers or "_load_lds_" in name)
    written = 0 if to_lds else _written(name, unit, modifiers)
    writes = [n for span in spans[:written] for n in span]
    kept = 0 if not _keeps(name, mnemonic, modifiers) else 1
    reads = [n for span in (*spans[written:], *spans[:kept]) for n in span]
    if name.startswith("v_swap"):
        reads = [n for span in spans for n in span]
    if memory and "_atomic_" in name and written and name.startswith("buffer"):
        reads += spans[0]
    if "saveexec" in name or "wrexec" in name or name.startswith("v_cmpx"):
        writes += (EXEC, EXEC + 1)
    if _READS_VCC.match(name):
        reads += (VCC, VCC + 1)
    if to_lds:
        reads.append(M0)
    return Effect(name, unit, spans, tuple(reads), tuple(writes), modifiers, to_lds)


def written(register: int) -> str:
    """Return a register's name."""
    if register in _NAMES:
        return _NAMES[register]
    kind = "v" if register < operand.ACCUMULATION else "a" if register < SCALAR else "s"
    return f"{kind}{register - {'v': 0, 'a': operand.ACCUMULATION, 's': SCALAR}[kind]}"


def _unit(name: str) -> Unit:
    if name.startswith(("v_mfma", "v_smfmac")):
        return Unit.MATRIX
    if name.startswith("v_"):
        return Unit.VECTOR
    if name.startswith("ds_"):
        return Unit.LDS
    if name.startswith("flat_"):
        return Unit.FLAT
    if name == "buffer_inv" or _CONTROL.match(name):
        return Unit.CONTROL
    if name.startswith(("global_", "buffer_", "tbuffer_", "scratch_")):
        return Unit.MEMORY
    return Unit.SCALAR_MEMORY if _SCALAR_MEMORY.match(name) else Unit.SCALAR if name.startswith("s_") else Unit.CONTROL


def _written(name: str, unit: Unit, modifiers: frozenset[str]) -> int:
    """Return how many operands, from the first on, are written."""
    if unit is Unit.LDS:
        return 1 if _LDS_RETURNS.match(name) else 0
    if unit is Unit.SCALAR_MEMORY:
        return 1 if "load" in name or "time" in name or ("atomic" in name and "glc" in modifiers) else 0
    if unit in (Unit.MEMORY, Unit.FLAT):
        return 1 if "_load_" in name or ("_atomic_" in name and modifiers & {"sc0", "glc"}) else 0
    return 0 if _NONE.match(name) else 2 if _TWO.match(name) else 1


def _keeps(name: str, mnemonic: str, modifiers: frozenset[str]) -> bool:
    """Return whether it reads the old content of what it writes."""
    if "dst_unused:UNUSED_PRESERVE" in modifiers or _KEEPS.match(name):
        return True
    if any(one.startswith("dst_sel:") and one != "dst_sel:DWORD" for one in modifiers):
        return not any(one.startswith("dst_unused:") for one in modifiers)  # the assembler's default preserves
    return "_dpp" in mnemonic and not any(one.startswith("bound_ctrl") for one in modifiers)


@functools.lru_cache(maxsize=1 << 12)
def _span(text: str) -> Span:
    try:
        found = operand.parse(text)
    except ValueError:
        return range(0)
    if found.kind is Kind.VECTOR:
        return range(found.index, found.index + found.registers)
    if found.kind is Kind.SCALAR:
        return range(SCALAR + found.index, SCALAR + found.index + found.registers)
    return range(0)
