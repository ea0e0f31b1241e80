"""NVIDIA's Nsight Compute: its command and its table.

Source: "Nsight Compute CLI" (`--page raw --csv`: a header, a row of units, a row per kernel) and its metrics reference.
Written from documentation.
"""

import re
from pathlib import Path

from kernel_scientist.hardware.counter_figures import STALLED, STALLED_END
from kernel_scientist.profile.dispatches import CountingError, Dispatch, count, dispatch, rows

REASONS = (
    *("long_scoreboard", "short_scoreboard", "barrier", "wait"),
    *("mio_throttle", "lg_throttle", "math_pipe_throttle", "not_selected"),
)
METRICS = (
    *("dram__bytes_read.sum", "dram__bytes_write.sum"),
    *("lts__t_sectors.sum", "lts__t_sectors_lookup_hit.sum", "lts__t_sectors_lookup_miss.sum"),
    *("sm__inst_executed.sum", "sm__inst_executed_pipe_tensor.sum", "sm__cycles_active.sum"),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    *(f"{STALLED}{reason}{STALLED_END}" for reason in REASONS),
)
FORBIDDEN = (
    "ncu may not read the counters here (ERR_NVGPUCTRPERM): load NVIDIA's driver with the module option "
    "NVreg_RestrictProfilingToAdminUsers=0"
)


def forbidden(text: str) -> bool:
    """Whether ncu's output or the driver's parameters say that only administrators may count."""
    return "ERR_NVGPUCTRPERM" in text or re.search(r"RmProfilingAdminOnly:\s*1", text) is not None


def unknown(text: str, metrics: tuple[str, ...]) -> tuple[str, ...]:
    """Return the metrics that ncu says this GPU lacks; their names differ between generations."""
    errors = "".join(line for line in text.splitlines() if line.startswith("==ERROR==")).replace("\\", "")
    return tuple(m for m in metrics if re.search(rf"\b{m.split('.')[0]}\b", errors))


def command(tool: str, metrics: tuple[str, ...], table: Path, program: list[str]) -> list[str]:
    """Return the command. Caches are flushed before each pass; clocks are left alone."""
    settings = ["--profile-from-start", "off", "--clock-control", "none", "--cache-control", "all"]
    form = ["--csv", "--page", "raw", "--print-units", "base", "--log-file", str(table)]
    return [tool, *settings, *form, "--target-processes", "all", "--metrics", ",".join(metrics), *program]


def read(text: str) -> list[Dispatch]:
    """Return the executions in a table, which ncu's own messages surround. Raises CountingError."""
    start = re.search(r'^"?ID"?,', text, re.M)
    if start is None:
        raise CountingError("ncu left no table")
    found: list[Dispatch] = []
    for row in rows(text[start.start() :], ("ID", "Kernel Name")):
        if not row["ID"].strip():
            continue  # the row of units
        one = dispatch(row["ID"], row["Kernel Name"])
        one.counts |= {m: value for m, text in row.items() if "__" in m and (value := count(text)) is not None}
        found.append(one)
    return found
