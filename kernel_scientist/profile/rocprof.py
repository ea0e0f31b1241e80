"""AMD's rocprofv3: what it is asked for, and the tables it leaves.

Source: rocprofiler-sdk, "Using rocprofv3" (counter collection): `--pmc` counts what fits into one pass, so each group
is a run of its own; `<name>_counter_collection.csv` has a row per dispatch and counter. Written from documentation.
"""

import re
from pathlib import Path

from kernel_scientist.profile.dispatches import CountingError, Dispatch, name, number, rows, whole

NAME = "counters"
TABLE = "counter_collection.csv"
COLUMNS = ("Dispatch_Id", "Kernel_Name", "Counter_Name", "Counter_Value")
TYPES = ("F16", "BF16", "F8", "F32", "F64", "I8")
WORK = (
    *("SQ_WAVES", "SQ_BUSY_CYCLES", "SQ_INSTS_VALU", "SQ_INSTS_MFMA"),
    *("SQ_INSTS_LDS", "SQ_LDS_BANK_CONFLICT", "SQ_LDS_IDX_ACTIVE", "GRBM_GUI_ACTIVE"),
)
MATRIX = tuple(f"SQ_INSTS_VALU_MFMA_MOPS_{type_}" for type_ in TYPES)
OCCUPANCY = ("OccupancyPercent",)
GFX942 = (
    WORK,
    ("TCC_HIT_sum", "TCC_MISS_sum", "TCC_REQ_sum", "TCC_BUBBLE_sum"),
    ("TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_EA0_WRREQ_sum", "TCC_EA0_WRREQ_64B_sum"),
    MATRIX,
    OCCUPANCY,
)
"""A pass holds 8 counters of SQ, 4 of TCC, 2 of GRBM; a derived one goes alone. The most telling groups come first."""
OTHERS = (WORK, ("TCC_HIT_sum", "TCC_MISS_sum", "TCC_REQ_sum"), ("FETCH_SIZE",), ("WRITE_SIZE",), MATRIX, OCCUPANCY)
"""Requests have other sizes elsewhere (by gfx942's formula gfx950's bytes are a quarter too few): the tool knows."""


def groups(arch: str) -> tuple[tuple[str, ...], ...]:
    """Return what is counted on an architecture, a run each."""
    return GFX942 if arch == "gfx942" else OTHERS


def command(tool: str, counters: tuple[str, ...], out: Path, program: list[str]) -> list[str]:
    """Return the command of one run; its table lies in `out`, or in a folder there (`pass_1`)."""
    return [tool, "--pmc", *counters, "--output-format", "csv", "-d", str(out), "-o", NAME, "--", *program]


def read(text: str) -> list[Dispatch]:
    """Return what a table holds. Raises CountingError; times are left where they are."""
    lines = rows(text)
    header = next(lines, [])
    if not set(COLUMNS) <= set(header):
        raise CountingError(f"rocprofv3's table has not the columns {', '.join(COLUMNS)}")
    places = [header.index(column) for column in COLUMNS]
    found: dict[int, Dispatch] = {}
    for line in lines:
        if len(line) <= max(places):
            continue
        order, kernel, counter, text_value = (line[place] for place in places)
        dispatch = found.setdefault(whole(order), Dispatch(whole(order), name(kernel)))
        if (value := number(text_value)) is not None and re.fullmatch(r"\w+", counter, re.ASCII):
            dispatch.counts[counter] = dispatch.counts.get(counter, 0.0) + value
    return list(found.values())
