"""Tables of profilers: they are read, any text is, and unreadable ones are a sentence."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.hardware import counter_figures
from kernel_scientist.profile import ncu, rocprof
from kernel_scientist.profile.dispatches import MARKER, CountingError, Dispatch, grouped
from kernel_scientist.records.gpu import Counters, Figures
from tests.profile.profiler_tables import HEADER, SPIN, ncu_table, rocprof_table


def test_what_rocprofv3_counts_is_parted_by_case_and_kernel() -> None:
    one = {"SQ_WAVES": 64.0}
    table = rocprof_table(
        [
            ("gemm(float*)", {"SQ_WAVES": 9.0}),  # the first call, in which it is compiled
            (SPIN, one),
            ("void gemm<64, 32>(float const*, float*)", {"SQ_WAVES": 100.0, "OccupancyPercent": 30.0}),
            ("void gemm<64, 32>(float const*, float*)", {"SQ_WAVES": 50.0, "OccupancyPercent": 50.0}),
            ("reduce(float*)", {"SQ_WAVES": 4.0}),
            (SPIN, one),
            ("sweep", {"SQ_WAVES": 7.0}),
            (SPIN, one),
            ("void gemm<64, 32>(float const*, float*)", {"SQ_WAVES": 12.0}),
            (SPIN, one),
        ]
    )
    found = {(g.case, g.kernel): g for g in grouped(rocprof.read(table), ["small", "large"])}
    assert set(found) == {("small", "gemm<64, 32>"), ("small", "reduce"), ("large", "gemm<64, 32>")}
    assert found["small", "gemm<64, 32>"].counts == {"SQ_WAVES": 150.0, "OccupancyPercent": 40.0}
    assert found["small", "gemm<64, 32>"].dispatches == 2
    assert found["large", "gemm<64, 32>"].counts == {"SQ_WAVES": 12.0}


def test_where_marks_do_not_part_the_calls_nothing_is_counted() -> None:
    calls = [Dispatch(1, "gemm"), Dispatch(2, MARKER), Dispatch(3, "gemm")]
    with pytest.raises(CountingError, match="1 markers for 1 cases"):
        grouped(calls, ["small"])


def test_ncu_s_raw_page_is_read() -> None:
    table = ncu_table(
        [
            (SPIN, {}),
            ("gemm(float *)", {"dram__bytes_read.sum": "1,234,500", "sm__inst_executed.sum": "2,000"}),
            (SPIN, {}),
        ],
        {"dram__bytes_read.sum": "byte", "sm__inst_executed.sum": "inst"},
    )
    (group,) = grouped(ncu.read(table), ["small"])
    assert group.kernel == "gemm"
    assert group.counts == {"dram__bytes_read.sum": 1_234_500.0, "sm__inst_executed.sum": 2000.0}


def test_a_name_that_this_gpu_has_not_is_told_from_those_it_has() -> None:
    words = "==ERROR== Failed to find metric regex:^sm__inst_executed_pipe_tensor\\.(sum|min|max|avg|pct)$\n"
    assert ncu.unknown(words, ncu.METRICS) == ("sm__inst_executed_pipe_tensor.sum",)
    assert ncu.unknown("==PROF== dram__bytes_read.sum", ncu.METRICS) == ()


@given(st.text())
def test_no_text_breaks_a_parser(text: str) -> None:
    for read in (rocprof.read, ncu.read):
        with contextlib.suppress(CountingError):
            read(text)


@given(st.lists(st.lists(st.one_of(st.text(max_size=12), st.sampled_from(["1", "2", "nan", "1e400", "-3", "7,5"])))))
def test_no_cells_break_a_parser(cells: list[list[str]]) -> None:
    body = "\n".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in cells)
    for read, head in ((rocprof.read, HEADER), (ncu.read, '"ID","Kernel Name","dram__bytes_read.sum"')):
        try:
            found = read(f"{head}\n{body}")
        except CountingError:
            continue
        for it in found:
            Counters(case="c", kernel=it.kernel, tool="ncu", dispatches=1, counts=it.counts, figures=Figures())
            assert all(value >= 0 for value in it.counts.values()) and it.kernel.isprintable()


@given(st.dictionaries(st.sampled_from([*sum(rocprof.GFX942, ()), "FETCH_SIZE", *ncu.METRICS]), st.floats(0, 1e24)))
def test_any_counts_come_to_figures(counts: dict[str, float]) -> None:
    for tool in ("rocprofv3", "ncu"):
        assert isinstance(counter_figures.describe(counter_figures.derive(tool, counts), 1.0), str)


def test_a_pass_fits_into_the_hardware() -> None:
    room = {"SQ": 8, "TCC": 4, "GRBM": 2}
    for group in (*rocprof.groups("gfx942"), *rocprof.groups("gfx950")):
        blocks = [name.split("_")[0] for name in group]
        assert all(blocks.count(block) <= room.get(block, 1) for block in blocks), group
