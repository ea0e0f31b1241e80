"""What counts come to: bytes, rates and shares.

Sources: AMD, rocprofiler-sdk's counter definitions and "MI300 and MI200 performance counters" (ROCm documentation; a
matrix operation counted by a MOPS counter is 512 FLOP; `FETCH_SIZE` and `WRITE_SIZE` are kilobytes), rocprof-compute's
"Bank Conflicts/Access"; NVIDIA, Nsight Compute's metrics reference.
"""

from collections.abc import Mapping, Sequence

from kernel_scientist.profile.dispatches import together
from kernel_scientist.records.gpu import Counters, Figures

MATRIX_FLOP = 512
STALLED, STALLED_END = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
CYCLES = ("GRBM_GUI_ACTIVE", "sm__cycles_active.sum")
"""How long a kernel was at work, by which shares are weighted; told to nobody as a time."""


def derive(tool: str, counts: Mapping[str, float]) -> Figures:
    """Return what one set of counts comes to."""
    return _amd(counts) if tool == "rocprofv3" else _nvidia(counts)


def total(counters: Sequence[Counters]) -> Figures:
    """Return what a submission's counters come to in one call on each case, all of its kernels together."""
    if not counters:
        return Figures()
    weights = [max((c.counts.get(name, 0.0) for name in CYCLES), default=0.0) or 1.0 for c in counters]
    return derive(counters[0].tool, together([c.counts for c in counters], weights))


def _amd(of: Mapping[str, float]) -> Figures:
    matrix = [value for name, value in of.items() if name.startswith("SQ_INSTS_VALU_MFMA_MOPS_")]
    conflicts = of.get("SQ_LDS_BANK_CONFLICT")
    return Figures(
        hbm_read_bytes=_amd_read(of),
        hbm_written_bytes=_amd_written(of),
        l2_hit_rate=_share(of, "TCC_HIT_sum", "TCC_MISS_sum"),
        lds_conflicts_per_access=_per_access(conflicts, of.get("SQ_LDS_IDX_ACTIVE")),
        matrix_share=_ratio(of.get("SQ_INSTS_MFMA"), of.get("SQ_INSTS_VALU")),
        matrix_flops=MATRIX_FLOP * sum(matrix) if matrix else None,
        occupancy=_percent(of.get("OccupancyPercent")),
    )


def _amd_read(of: Mapping[str, float]) -> float | None:
    """Requests are of 128, 32 and otherwise 64 bytes (gfx942)."""
    all_, short, long = (of.get(f"TCC_{n}_sum") for n in ("EA0_RDREQ", "EA0_RDREQ_32B", "BUBBLE"))
    if all_ is not None and short is not None and long is not None:
        return 128 * long + 64 * max(all_ - long - short, 0.0) + 32 * short
    return 1024 * of["FETCH_SIZE"] if "FETCH_SIZE" in of else None


def _amd_written(of: Mapping[str, float]) -> float | None:
    all_, long = of.get("TCC_EA0_WRREQ_sum"), of.get("TCC_EA0_WRREQ_64B_sum")
    if all_ is not None and long is not None:
        return 64 * long + 32 * max(all_ - long, 0.0)
    return 1024 * of["WRITE_SIZE"] if "WRITE_SIZE" in of else None


def _nvidia(of: Mapping[str, float]) -> Figures:
    shared = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
    return Figures(
        hbm_read_bytes=of.get("dram__bytes_read.sum"),
        hbm_written_bytes=of.get("dram__bytes_write.sum"),
        l2_hit_rate=_share(of, "lts__t_sectors_lookup_hit.sum", "lts__t_sectors_lookup_miss.sum"),
        lds_conflicts_per_access=_per_access(*(of.get(name) for name in shared)),
        matrix_share=_ratio(of.get("sm__inst_executed_pipe_tensor.sum"), of.get("sm__inst_executed.sum")),
        occupancy=_percent(of.get("sm__warps_active.avg.pct_of_peak_sustained_active")),
        stalls={
            name.removeprefix(STALLED).removesuffix(STALLED_END): value
            for name, value in of.items()
            if name.startswith(STALLED)
        },
    )


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _share(of: Mapping[str, float], hit: str, miss: str) -> float | None:
    return _ratio(of[hit], of[hit] + of[miss]) if hit in of and miss in of else None


def _per_access(conflicts: float | None, active: float | None) -> float | None:
    """Return conflicts for each access that has none; none where shared memory is not used."""
    if conflicts is None or active is None or active <= conflicts:
        return None
    return conflicts / (active - conflicts)


def _percent(value: float | None) -> float | None:
    return None if value is None else value / 100
