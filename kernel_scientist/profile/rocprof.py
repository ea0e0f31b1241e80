"""AMD's rocprofv3: its command and its tables.

Source: rocprofiler-sdk, "Using rocprofv3" (counter collection): `--pmc` counts only what fits into one pass, so each
group is a separate run; `<name>_counter_collection.csv` has a row per dispatch and counter. Written from documentation.
"""

import re
from pathlib import Path

from kernel_scientist.profile.dispatches import CountingError, Dispatch, count, dispatch, rows

TABLE = "counter_collection.csv"
COLUMNS = ("Dispatch_Id", "Kernel_Name", "Counter_Name", "Counter_Value")
WORK = (
    *("SQ_WAVES", "SQ_BUSY_CYCLES", "SQ_INSTS_VALU", "SQ_INSTS_MFMA"),
    *("SQ_INSTS_LDS", "SQ_LDS_BANK_CONFLICT", "SQ_LDS_IDX_ACTIVE", "GRBM_GUI_ACTIVE"),
)
MATRIX = tuple(f"SQ_INSTS_VALU_MFMA_MOPS_{type_}" for type_ in ("F16", "BF16", "F8", "F32", "F64", "I8"))
OCCUPANCY = ("OccupancyPercent",)
GFX942 = (
    WORK,
    ("TCC_HIT_sum", "TCC_MISS_sum", "TCC_REQ_sum", "TCC_BUBBLE_sum"),
    ("TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_EA0_WRREQ_sum", "TCC_EA0_WRREQ_64B_sum"),
    MATRIX,
    OCCUPANCY,
)
"""Groups in order of importance. A pass holds 8 counters of SQ, 4 of TCC, 2 of GRBM; derived ones need their own."""
OTHERS = (WORK, ("TCC_HIT_sum", "TCC_MISS_sum", "TCC_REQ_sum"), ("FETCH_SIZE",), ("WRITE_SIZE",), MATRIX, OCCUPANCY)
"""Other architectures have other request sizes (gfx942's formula counts a quarter too few on gfx950), so the tool's own
derived counters are read."""


def groups(arch: str) -> tuple[tuple[str, ...], ...]:
    """Return the counters of an architecture, one group per run."""
    return GFX942 if arch == "gfx942" else OTHERS


def command(tool: str, counters: tuple[str, ...], out: Path, program: list[str]) -> list[str]:
    """Return the command of one run."""
    return [tool, "--pmc", *counters, "--output-format", "csv", "-d", str(out), "-o", "counters", "--", *program]


def table(out: Path) -> str:
    """Return the table of a run, which is in `out` or in a folder there (`pass_1`). Raises CountingError if none is."""
    tables = [path for path in out.rglob(f"*{TABLE}") if path.is_file()]
    if not tables:
        raise CountingError("rocprofv3 left no table")
    return max(tables, key=lambda path: path.stat().st_size).read_text(errors="replace")  # compilers leave empty ones


def read(text: str) -> list[Dispatch]:
    """Return the executions in a table; time stamps are not read. Raises CountingError."""
    found: dict[str, Dispatch] = {}
    for number, kernel, counter, text_value in ([row[column] for column in COLUMNS] for row in rows(text, COLUMNS)):
        counts = found.setdefault(number, dispatch(number, kernel)).counts
        if (value := count(text_value)) is not None and re.fullmatch(r"\w+", counter, re.ASCII):
            counts[counter] = counts.get(counter, 0.0) + value
    return list(found.values())
