"""Figures of counters: computed, stored, shown."""

import json
from pathlib import Path

import pytest

from kernel_scientist.campaign import results
from kernel_scientist.hardware import counter_figures
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.gpu import Counters, Figures
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.report import compilation
from kernel_scientist.tracking import artifacts, run_content
from tests.profile.profiler_tables import evaluation


def test_amd_s_figures_by_hand() -> None:
    counts = {
        "TCC_BUBBLE_sum": 10.0,  # 128 bytes each: 1280
        "TCC_EA0_RDREQ_sum": 100.0,
        "TCC_EA0_RDREQ_32B_sum": 20.0,  # 32 bytes each: 640; 70 are left, 64 bytes each: 4480
        "TCC_EA0_WRREQ_sum": 50.0,
        "TCC_EA0_WRREQ_64B_sum": 40.0,  # 2560, and 10 of 32 bytes: 320
        "TCC_HIT_sum": 75.0,
        "TCC_MISS_sum": 25.0,
        "SQ_LDS_BANK_CONFLICT": 30.0,
        "SQ_LDS_IDX_ACTIVE": 130.0,
        "SQ_INSTS_MFMA": 8.0,
        "SQ_INSTS_VALU": 32.0,
        "SQ_INSTS_VALU_MFMA_MOPS_F8": 3.0,
        "SQ_INSTS_VALU_MFMA_MOPS_F16": 1.0,
        "OccupancyPercent": 37.5,
    }
    assert counter_figures.derive("rocprofv3", counts) == Figures(
        hbm_read_bytes=6400,
        hbm_written_bytes=2880,
        l2_hit_rate=0.75,
        lds_conflicts_per_access=0.3,
        matrix_share=0.25,
        matrix_flops=2048,
        occupancy=0.375,
    )
    elsewhere = counter_figures.derive("rocprofv3", {"FETCH_SIZE": 2.0, "WRITE_SIZE": 0.5})
    assert (elsewhere.hbm_read_bytes, elsewhere.hbm_written_bytes) == (2048, 512)
    assert counter_figures.derive("rocprofv3", {}) == Figures()


def test_nvidia_s_figures_by_hand() -> None:
    counts = {
        "dram__bytes_read.sum": 4096.0,
        "dram__bytes_write.sum": 1024.0,
        "lts__t_sectors_lookup_hit.sum": 30.0,
        "lts__t_sectors_lookup_miss.sum": 10.0,
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 5.0,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 25.0,
        "sm__inst_executed.sum": 1000.0,
        "sm__inst_executed_pipe_tensor.sum": 50.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 62.5,
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 4.5,
    }
    assert counter_figures.derive("ncu", counts) == Figures(
        hbm_read_bytes=4096,
        hbm_written_bytes=1024,
        l2_hit_rate=0.75,
        lds_conflicts_per_access=0.25,
        matrix_share=0.05,
        occupancy=0.625,
        stalls={"long_scoreboard": 4.5},
    )


def counters(case: str, kernel: str, **counts: float) -> Counters:
    of = counter_figures.derive("rocprofv3", counts)
    return Counters(case=case, kernel=kernel, tool="rocprofv3", dispatches=1, counts=counts, figures=of)


LARGE = counters("large", "gemm", FETCH_SIZE=3.0, WRITE_SIZE=1.0, OccupancyPercent=50.0, GRBM_GUI_ACTIVE=300.0)
SMALL = counters("small", "tail", FETCH_SIZE=1.0, WRITE_SIZE=1.0, OccupancyPercent=10.0, GRBM_GUI_ACTIVE=100.0)


def test_a_total_adds_counts_and_weighs_shares() -> None:
    total = counter_figures.total([LARGE, SMALL])
    assert (total.hbm_read_bytes, total.hbm_written_bytes) == (4096, 2048)
    assert total.occupancy == pytest.approx((3 * 0.5 + 1 * 0.1) / 4)
    assert counter_figures.total([]) == Figures()


def test_an_older_evaluation_has_no_counters() -> None:
    kept = json.loads(evaluation(counters=(LARGE,)).model_dump_json())
    assert Evaluation.model_validate(kept).counters == (LARGE,)
    del kept["counters"]
    assert Evaluation.model_validate(kept).counters == ()


def test_a_run_has_figures_as_metrics_and_counts_as_a_file(tmp_path: Path) -> None:
    it = evaluation(counters=(LARGE, SMALL))
    trial = Trial(kernel=Kernel(name="k00001", language="triton", source="pass"), evaluation=it)
    found = run_content.metrics(trial, Population())
    assert found["profiler/hbm_read_bytes"] == 4096 and "profiler/matrix_share" not in found
    (tmp_path / "run").mkdir()
    artifacts.write(tmp_path / "run", trial, Population())
    rows = json.loads((tmp_path / "run" / "counters.json").read_text())
    assert [row["kernel"] for row in rows] == ["gemm", "tail"] and rows[0]["counts"]["FETCH_SIZE"] == 3.0
    assert not any(
        name.startswith("counter")
        for name in run_content.metrics(trial.model_copy(update={"evaluation": evaluation()}), Population())
    )


def test_counters_are_told_as_text_and_as_json() -> None:
    text = "\n".join(compilation.counter_lines((LARGE, SMALL)))
    assert "counters by rocprofv3" in text and "2 cases" in text and "no times" in text
    assert "large, gemm: 3.07 kB read from memory, 1.02 kB written; occupancy 50 %" in text
    assert list(compilation.counter_lines(())) == []
    found = results.counters(evaluation(counters=(LARGE, SMALL)))
    assert found is not None and found.by == "rocprofv3" and found.total.hbm_read_bytes == 4096
    assert results.counters(evaluation()) is None
