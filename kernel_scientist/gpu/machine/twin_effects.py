"""What each instruction reads and writes, packed for checking runs (`native/checker.h`).

Runs in workers: standard library and numpy only.
"""

import re
from enum import IntEnum
from typing import Any

import numpy as np

from kernel_scientist.gpu.machine import effects as effect
from kernel_scientist.gpu.machine.effects import EXEC, SCALAR, VCC, Effect, Unit
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.listing import Listing, Statement
from kernel_scientist.gpu.machine.operands import SCALARS
from kernel_scientist.gpu.machine.program import Array

PACKED = np.dtype(
    [("nature", "u1"), ("reserved", "u1"), ("addresses", "u2"), ("reads", "u2"), ("writes", "u2"), ("first", "u4")],
    align=True,
)
SCC = SCALAR + SCALARS["scc"]
MOST_READS = 256
_MOVES = re.compile(r"s_mov_b(32|64)|v_mov_b(32|64)(_e32|_e64)?|v_accvgpr_(read|write|mov)_b32(_e32|_e64)?")
_BY_M0 = ("s_set_gpr_idx", "s_movrel")
_BRANCHES = {"scc0": (SCC,), "scc1": (SCC,), "vccz": (VCC, VCC + 1), "vccnz": (VCC, VCC + 1)}


class Nature(IntEnum):
    """What an instruction does; as in `native/checker.h`."""

    OTHER = 0
    LOAD = 1
    STORE = 2
    ATOMIC = 3
    BARRIER = 4
    RELEASE = 5
    """Writes the caches back, so that other workgroups can see what was stored."""
    ACQUIRE = 6
    """Empties the caches, so that loads behind it see what others stored."""
    MATRIX = 7
    ONE_LANE = 8
    EXEC_ZERO = 9
    EXEC_SET = 10
    MOVE = 11
    """Copies registers, one by one."""


def followed(listing: Listing) -> bool:
    """Return whether it is known what all instructions read and write: not where M0 says which registers."""
    return not any(s.mnemonic.startswith(_BY_M0) for s in listing.statements)


def packed(listing: Listing) -> tuple[Array, Array]:
    """Return the effects of all instructions, and the list of registers that they refer to."""
    rows, registers = list[tuple[int, ...]](), list[int]()
    for statement in listing.statements:
        nature, addresses, reads, writes = _described(statement)
        rows.append((nature, 0, len(addresses), len(addresses) + len(reads), len(writes), len(registers)))
        registers += [*addresses, *reads, *writes]
    return np.array(rows, PACKED), np.array(registers or [0], np.uint16)


def _described(statement: Statement) -> tuple[Nature, list[int], list[int], list[int]]:
    """Return nature, registers that are read as addresses, others that are read, and those that are written."""
    found = effect.of(statement.mnemonic, statement.operands)
    name = found.name
    if name.startswith("s_cbranch_exec"):
        return (Nature.EXEC_ZERO if name.endswith("execz") else Nature.EXEC_SET), [], [EXEC, EXEC + 1], []
    if name.startswith("s_cbranch_"):
        return Nature.OTHER, [], list(_BRANCHES.get(name.removeprefix("s_cbranch_"), ())), []
    if name.startswith(("buffer_wb", "buffer_inv")):
        wide = "sc1" in statement.operands or name.endswith("inv1")
        caches = Nature.RELEASE if name.startswith("buffer_wb") else Nature.ACQUIRE
        return (caches if wide else Nature.OTHER), [], [], []
    if name == "s_barrier":
        return Nature.BARRIER, [], [], []
    reads, writes = list(dict.fromkeys(found.reads)), list(dict.fromkeys(found.writes))
    addresses = _addresses(found)
    if found.unit is Unit.SCALAR:
        reads, writes = [*reads, SCC], [*writes, SCC]
    if name in ("s_setpc_b64", "s_swappc_b64"):
        writes = writes if name == "s_swappc_b64" else []
    known = set(addresses)
    nature = Nature.MOVE if _MOVES.fullmatch(statement.mnemonic) else _nature(found)
    return nature, addresses, [n for n in reads if n not in known][:MOST_READS], writes


def _nature(found: Effect) -> Nature:
    name = found.name
    if found.unit is Unit.MATRIX:
        return Nature.MATRIX
    if name == "v_writelane_b32":
        return Nature.ONE_LANE
    if found.unit is Unit.LDS:
        plain = name.startswith(("ds_read", "ds_load", "ds_bpermute", "ds_permute", "ds_swizzle"))
        return Nature.LOAD if plain else Nature.STORE if name.startswith(("ds_write", "ds_store")) else Nature.ATOMIC
    if found.unit in (Unit.MEMORY, Unit.FLAT, Unit.SCALAR_MEMORY):
        return Nature.ATOMIC if "_atomic_" in name else Nature.STORE if "_store_" in name else Nature.LOAD
    return Nature.OTHER


def _addresses(found: Effect) -> list[int]:
    """Return the registers of a memory instruction that say where."""
    spans: Any = found.operands
    if found.unit is Unit.LDS:
        places = [1] if found.reads_lds and len(spans) > 1 else [0]
    elif found.unit in (Unit.MEMORY, Unit.FLAT):
        buffer = found.name.startswith(("buffer", "tbuffer"))
        stores = "_store_" in found.name or ("_atomic_" in found.name and not found.writes and not buffer)
        if found.to_lds:
            places = list(range(len(spans)))
        elif buffer:
            places = list(range(1, len(spans)))
        elif stores:
            places = [0, *range(2, len(spans))]
        elif "_atomic_" in found.name:
            places = [1, *range(3, len(spans))]
        else:
            places = list(range(1, len(spans)))
    elif found.unit is Unit.SCALAR_MEMORY:
        places = list(range(1, len(spans)))
    else:
        return []
    return list(dict.fromkeys(n for place in places if place < len(spans) for n in spans[place]))


def require(library: Library, order: "np.dtype[Any]") -> None:
    """Raise RuntimeError if the native library packs effects and orders of checks differently."""
    native = library.native
    if (native.machine_effect_bytes(), native.machine_check_order_bytes()) != (PACKED.itemsize, order.itemsize):
        raise RuntimeError("the machine's native library is of another version; remove it from the cache")
