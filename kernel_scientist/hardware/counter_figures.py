"""Figures derived from hardware counters: bytes, rates and shares, as numbers and as text.

Sources: AMD, rocprofiler-sdk's counter definitions and "MI300 and MI200 performance counters" (ROCm documentation; a
matrix operation counted by a MOPS counter is 512 FLOP; `FETCH_SIZE` and `WRITE_SIZE` are kilobytes), rocprof-compute's
"Bank Conflicts/Access"; NVIDIA, Nsight Compute's metrics reference.
"""

from collections.abc import Mapping, Sequence

from kernel_scientist.records.gpu import Counters, Figures

MATRIX_FLOP = 512
STALLED, STALLED_END = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
CYCLES = ("GRBM_GUI_ACTIVE", "sm__cycles_active.sum")
"""Counters of active cycles, used as weights of shares, never reported as times."""
STALLS = 3
"""Stall reasons that are named, the most frequent first."""
SHARES = (".pct", ".ratio", "pct_of_peak_sustained_active", "Percent")
"""Suffixes of the names of shares, which are averaged over dispatches, not summed."""
Counts = Mapping[str, float]


def derive(tool: str, counts: Counts) -> Figures:
    """Return the figures of one set of counts."""
    return _amd(counts) if tool == "rocprofv3" else _nvidia(counts)


def total(counters: Sequence[Counters]) -> Figures:
    """Combine the counters of all kernels, called once per case, into one set of figures."""
    if not counters:
        return Figures()
    weights = [max(c.counts.get(name, 0.0) for name in CYCLES) or 1.0 for c in counters]
    return derive(counters[0].tool, combined([c.counts for c in counters], weights))


def combined(counts: Sequence[Mapping[str, float]], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Return several sets of counts as one: sums, and means of shares (weighted if weights are given)."""
    weighted = list(zip(counts, weights or [1.0] * len(counts), strict=True))
    found: dict[str, float] = {}
    for key in dict.fromkeys(name for one in counts for name in one):
        values = [(one[key], weight) for one, weight in weighted if key in one]
        total = sum(value * weight for value, weight in values) / sum(weight for _, weight in values)
        found[key] = total if key.endswith(SHARES) else sum(value for value, _ in values)
    return found


def describe_total(counters: Sequence[Counters]) -> str:
    """Return the figures of `total` in a line."""
    return describe(total(counters))


def describe(of: Figures, must_bytes: float | None = None) -> str:
    """Return figures as one line. `must_bytes`: the least bytes that the case must move, if known."""
    parts: list[str] = []
    if of.hbm_read_bytes is not None and of.hbm_written_bytes is not None:
        moved = of.hbm_read_bytes + of.hbm_written_bytes
        share = f" ({moved / must_bytes:.3g} times what must be moved)" if must_bytes else ""
        read, written = _brief(of.hbm_read_bytes, "B"), _brief(of.hbm_written_bytes, "B")
        parts.append(f"{read} read from memory, {written} written{share}")
    values = (
        ("L2 hit rate {:.3g} %", _ratio(of.l2_hit_rate, 0.01)),
        ("LDS bank conflicts cost {:.2g} per access", of.lds_conflicts_per_access),
        ("matrix instructions {:.3g} %", _ratio(of.matrix_share, 0.01)),
        ("{} on matrix units", _brief(of.matrix_flops, "FLOP") if of.matrix_flops else None),
        ("occupancy {:.3g} %", _ratio(of.occupancy, 0.01)),
    )
    parts += [text.format(value) for text, value in values if value is not None]
    if waits := [(n, v) for n, v in sorted(of.stalls.items(), key=lambda item: -item[1])[:STALLS] if v > 0]:
        parts.append(f"warps wait for {', '.join(f'{name} {value:.2g}' for name, value in waits)} per instruction")
    return "; ".join(parts) or "no figures"


def _amd(of: Counts) -> Figures:
    matrix = [value for name, value in of.items() if name.startswith("SQ_INSTS_VALU_MFMA_MOPS_")]
    reads = [of.get(f"TCC_{name}_sum") for name in ("EA0_RDREQ", "BUBBLE", "EA0_RDREQ_32B")]
    writes = [of.get(f"TCC_{name}_sum") for name in ("EA0_WRREQ", "EA0_WRREQ_64B")]
    return Figures(
        hbm_read_bytes=_bytes(reads, (64, 128, 32), of.get("FETCH_SIZE")),
        hbm_written_bytes=_bytes(writes, (32, 64), of.get("WRITE_SIZE")),
        l2_hit_rate=_hit_rate(of.get("TCC_HIT_sum"), of.get("TCC_MISS_sum")),
        lds_conflicts_per_access=_per_access(of.get("SQ_LDS_BANK_CONFLICT"), of.get("SQ_LDS_IDX_ACTIVE")),
        matrix_share=_ratio(of.get("SQ_INSTS_MFMA"), of.get("SQ_INSTS_VALU")),
        matrix_flops=MATRIX_FLOP * sum(matrix) if matrix else None,
        occupancy=_ratio(of.get("OccupancyPercent"), 100),
    )


def _nvidia(of: Counts) -> Figures:
    shared = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
    return Figures(
        hbm_read_bytes=of.get("dram__bytes_read.sum"),
        hbm_written_bytes=of.get("dram__bytes_write.sum"),
        l2_hit_rate=_hit_rate(of.get("lts__t_sectors_lookup_hit.sum"), of.get("lts__t_sectors_lookup_miss.sum")),
        lds_conflicts_per_access=_per_access(*(of.get(name) for name in shared)),
        matrix_share=_ratio(of.get("sm__inst_executed_pipe_tensor.sum"), of.get("sm__inst_executed.sum")),
        occupancy=_ratio(of.get("sm__warps_active.avg.pct_of_peak_sustained_active"), 100),
        stalls={
            name.removeprefix(STALLED).removesuffix(STALLED_END): value
            for name, value in of.items()
            if name.startswith(STALLED)
        },
    )


def _bytes(requests: Sequence[float | None], sizes: Sequence[int], kilobytes: float | None) -> float | None:
    """Return the bytes of `requests`: the total, then counts of special sizes. `sizes`: the usual one first (gfx942).

    Other architectures count kilobytes directly.
    """
    known = [count for count in requests if count is not None]
    if len(known) < len(requests):
        return None if kilobytes is None else 1024 * kilobytes
    usual = max(known[0] - sum(known[1:]), 0.0)
    return sum(count * size for count, size in zip((usual, *known[1:]), sizes, strict=True))


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _hit_rate(hits: float | None, misses: float | None) -> float | None:
    return None if hits is None or misses is None else _ratio(hits, hits + misses)


def _per_access(conflicts: float | None, active: float | None) -> float | None:
    """Return cycles lost to conflicts per cycle without; None if shared memory is not used."""
    if conflicts is None or active is None or active <= conflicts:
        return None
    return conflicts / (active - conflicts)


def _brief(count: float, unit: str) -> str:
    steps = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (0, ""))
    size, prefix = next(step for step in steps if count >= step[0])
    return f"{count / (size or 1):.3g} {prefix}{unit}"
