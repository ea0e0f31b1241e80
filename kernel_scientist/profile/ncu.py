"""NVIDIA's Nsight Compute: what it is asked for, and the table it leaves.

Source: "Nsight Compute CLI" (`--page raw --csv`: a header, a row of units, a row per kernel) and its metrics reference.
The page `details` has a row per kernel and metric; that is read as well. Written from documentation.
"""

import re
from pathlib import Path

from kernel_scientist.profile.dispatches import CountingError, Dispatch, name, number, rows, whole
from kernel_scientist.profile.metrics import STALLED, STALLED_END

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
LONG = ("Metric Name", "Metric Unit", "Metric Value")
THOUSANDS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
FORBIDDEN = (
    "ncu may not read the counters here (ERR_NVGPUCTRPERM): load NVIDIA's driver with the module option "
    "NVreg_RestrictProfilingToAdminUsers=0"
)


def forbidden(words: str) -> bool:
    """Whether the driver's parameters, or what ncu prints, say that only administrators may count."""
    return "ERR_NVGPUCTRPERM" in words or re.search(r"RmProfilingAdminOnly:\s*1", words) is not None


def unknown(words: str, metrics: tuple[str, ...]) -> tuple[str, ...]:
    """Return which metrics ncu says that this GPU has not; their names differ between generations."""
    refused = "".join(line for line in words.splitlines() if line.startswith("==ERROR==")).replace("\\", "")
    return tuple(m for m in metrics if re.search(rf"\b{m.split('.')[0]}\b", refused))


def command(tool: str, metrics: tuple[str, ...], table: Path, program: list[str]) -> list[str]:
    """Return the command. Caches are flushed before each pass, as ours are; clocks are left alone."""
    settings = ["--profile-from-start", "off", "--clock-control", "none", "--cache-control", "all"]
    form = ["--csv", "--page", "raw", "--print-units", "base", "--log-file", str(table)]
    return [tool, *settings, *form, "--target-processes", "all", "--metrics", ",".join(metrics), *program]


def read(text: str) -> list[Dispatch]:
    """Return what a table holds, in whichever page's form. Raises CountingError."""
    start = re.search(r'^"?ID"?,', text, re.M)
    if start is None:
        if forbidden(text):
            raise CountingError(FORBIDDEN)
        raise CountingError("ncu left no table")
    lines = rows(text[start.start() :])
    header = next(lines, [])
    if "Kernel Name" not in header:
        raise CountingError("ncu's table has no column 'Kernel Name'")
    return _long(header, list(lines)) if set(LONG) <= set(header) else _wide(header, list(lines))


def _wide(header: list[str], lines: list[list[str]]) -> list[Dispatch]:
    """A column per metric; the row of units has no ID."""
    kernel, units, found = header.index("Kernel Name"), [""] * len(header), list[Dispatch]()
    for line in lines:
        if len(line) != len(header):
            continue  # ncu's own remarks after the table
        if not line[0].strip():
            units = line
            continue
        dispatch = Dispatch(whole(line[0]), name(line[kernel]))
        for metric, unit, text in zip(header, units, line, strict=True):
            if "__" in metric and (value := _scaled(text, unit)) is not None:
                dispatch.counts[metric] = value
        found.append(dispatch)
    return found


def _long(header: list[str], lines: list[list[str]]) -> list[Dispatch]:
    """A row per kernel and metric."""
    kernel, places, found = header.index("Kernel Name"), [header.index(c) for c in LONG], dict[int, Dispatch]()
    for line in lines:
        if len(line) <= max(*places, kernel):
            continue
        metric, unit, text = (line[place] for place in places)
        dispatch = found.setdefault(whole(line[0]), Dispatch(whole(line[0]), name(line[kernel])))
        if "__" in metric and (value := _scaled(text, unit)) is not None:
            dispatch.counts[metric] = value
    return list(found.values())


def _scaled(text: str, unit: str) -> float | None:
    """Return a value in its unit without prefix: `Mbyte` is 1e6 bytes."""
    value, prefix = number(text), re.match(r"([KMGT]?)(?:byte|sector|inst|cycle)", unit)
    return value if value is None or prefix is None else value * THOUSANDS[prefix[1]]
