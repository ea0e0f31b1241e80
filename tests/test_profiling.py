"""Counters: tables are read, figures are right, failures are sentences, and the subject runs confined.

The tables are written here after the tools' documentation; those of a GPU come from the tests marked `gpu`.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.evaluate.evaluator import Evaluator
from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.hardware.targets import Target
from kernel_scientist.population.lineage import Population
from kernel_scientist.profile import counting, enclosed, metrics, ncu, profiler, rocprof, target_process, workspace
from kernel_scientist.profile import text as wording
from kernel_scientist.profile.dispatches import MARKER, CountingError, Dispatch, grouped
from kernel_scientist.profile.profiler import Profiler
from kernel_scientist.records.evaluation import Evaluation, Timing, Trial
from kernel_scientist.records.gpu import Counters, Figures
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Harness, Params
from kernel_scientist.report import resources, summaries
from kernel_scientist.sandbox import device_lock, landlock
from kernel_scientist.tracking import artifacts, run_content
from kernel_scientist.workers.pool import WorkerPool
from tasks.timing import count_kernel
from tests.conftest import ROOT

Judge = Callable[[str], Evaluator]
HEADER = (
    '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id",'
    '"Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count",'
    '"Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"'
)
SPIN = "at::cuda::(anonymous namespace)::spin_kernel(long)"


def rocprof_table(dispatches: list[tuple[str, dict[str, float]]]) -> str:
    """A table as rocprofv3 writes it: a row per dispatch and counter."""
    lines = [HEADER]
    for number, (kernel, counts) in enumerate(dispatches, start=1):
        for counter, value in counts.items():
            place = f'{number},{number},"Agent 4",1,900,900,65536,{number % 3}'
            rest = f'256,0,0,32,4,48,"{counter}",{value:.6f},{1000 + number},{2000 + number}'
            lines.append(f'{place},"{kernel}",{rest}')
    return "\n".join(lines) + "\n"


def ncu_table(dispatches: list[tuple[str, dict[str, str]]], units: dict[str, str]) -> str:
    """A table of ncu's page `raw`: names, units, a row per kernel; its own words around it."""
    names = list(units)
    first = [
        "ID",
        "Process ID",
        "Process Name",
        "Host Name",
        "Kernel Name",
        "Context",
        "Stream",
        "Device",
        "CC",
        *names,
    ]
    rows = [first, [""] * 9 + list(units.values())]
    for number, (kernel, counts) in enumerate(dispatches):
        rows.append([str(number), "77", "python3.11", "127.0.0.1", kernel, "1", "7", "0", "9.0"])
        rows[-1] += [counts.get(name, "n/a") for name in names]
    table = "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)
    return f"==PROF== Connected to process 77 (/usr/bin/python3.11)\n{table}\n==PROF== Disconnected from process 77\n"


# tables


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
    with pytest.raises(CountingError, match="1 marks for 1 cases"):
        grouped(calls, ["small"])


def test_ncu_s_raw_page_is_read_in_whatever_unit() -> None:
    table = ncu_table(
        [
            (SPIN, {}),
            ("gemm(float *)", {"dram__bytes_read.sum": "1,234.50", "sm__inst_executed.sum": "2,000"}),
            (SPIN, {}),
        ],
        {"dram__bytes_read.sum": "Mbyte", "sm__inst_executed.sum": "inst"},
    )
    (group,) = grouped(ncu.read(table), ["small"])
    assert group.kernel == "gemm"
    assert group.counts == {"dram__bytes_read.sum": 1_234_500_000.0, "sm__inst_executed.sum": 2000.0}


def test_ncu_s_details_page_is_read_as_well() -> None:
    start = '"{}","77","python","host","k(int)","1","7","Command line profiler metrics",'
    table = "\n".join(
        [
            '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Section Name",'
            '"Metric Name","Metric Unit","Metric Value"',
            start.format(3) + '"dram__bytes_read.sum","Kbyte","2.00"',
            start.format(3) + '"lts__t_sectors.sum","sector","64"',
            start.format(4) + '"dram__bytes_read.sum","byte","n/a"',
        ]
    )
    first, second = ncu.read(table)
    assert first.counts == {"dram__bytes_read.sum": 2000.0, "lts__t_sectors.sum": 64.0} and second.counts == {}


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
    heads = (
        HEADER,
        '"ID","Kernel Name","dram__bytes_read.sum"',
        '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"',
    )
    for read, head in ((rocprof.read, heads[0]), (ncu.read, heads[1]), (ncu.read, heads[2])):
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
        assert isinstance(wording.said(metrics.derive(tool, counts), 1.0), str)


# figures


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
    assert metrics.derive("rocprofv3", counts) == Figures(
        hbm_read_bytes=6400,
        hbm_written_bytes=2880,
        l2_hit_rate=0.75,
        lds_conflicts_per_access=0.3,
        matrix_share=0.25,
        matrix_flops=2048,
        occupancy=0.375,
    )
    elsewhere = metrics.derive("rocprofv3", {"FETCH_SIZE": 2.0, "WRITE_SIZE": 0.5})
    assert (elsewhere.hbm_read_bytes, elsewhere.hbm_written_bytes) == (2048, 512)
    assert metrics.derive("rocprofv3", {}) == Figures()


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
    assert metrics.derive("ncu", counts) == Figures(
        hbm_read_bytes=4096,
        hbm_written_bytes=1024,
        l2_hit_rate=0.75,
        lds_conflicts_per_access=0.25,
        matrix_share=0.05,
        occupancy=0.625,
        stalls={"long_scoreboard": 4.5},
    )


def counters(case: str, kernel: str, **counts: float) -> Counters:
    of = metrics.derive("rocprofv3", counts)
    return Counters(case=case, kernel=kernel, tool="rocprofv3", dispatches=1, counts=counts, figures=of)


LARGE = counters("large", "gemm", FETCH_SIZE=3.0, WRITE_SIZE=1.0, OccupancyPercent=50.0, GRBM_GUI_ACTIVE=300.0)
SMALL = counters("small", "tail", FETCH_SIZE=1.0, WRITE_SIZE=1.0, OccupancyPercent=10.0, GRBM_GUI_ACTIVE=100.0)


def test_a_total_adds_counts_and_weighs_shares() -> None:
    total = metrics.total([LARGE, SMALL])
    assert (total.hbm_read_bytes, total.hbm_written_bytes) == (4096, 2048)
    assert total.occupancy == pytest.approx((3 * 0.5 + 1 * 0.1) / 4)
    assert metrics.total([]) == Figures()


def test_a_pass_fits_into_the_hardware() -> None:
    room = {"SQ": 8, "TCC": 4, "GRBM": 2}
    for group in (*rocprof.groups("gfx942"), *rocprof.groups("gfx950")):
        blocks = [name.split("_")[0] for name in group]
        assert all(blocks.count(block) <= room.get(block, 1) for block in blocks), group


# where it is shown


def evaluation(**changes: object) -> Evaluation:
    timing = Timing(case="large", time_us=5.0, interval_us=(4.9, 5.1))
    return Evaluation(verdict=Verdict.OK, timings=(timing,)).model_copy(update=changes)


def test_an_older_evaluation_has_no_counters() -> None:
    kept = json.loads(evaluation(counters=(LARGE,)).model_dump_json())
    assert Evaluation.model_validate(kept).counters == (LARGE,)
    del kept["counters"]
    assert Evaluation.model_validate(kept).counters == ()


def test_a_run_has_figures_as_metrics_and_counts_as_a_file(tmp_path: Path) -> None:
    it = evaluation(counters=(LARGE, SMALL))
    trial = Trial(kernel=Kernel(name="k00001", language="triton", source="pass"), evaluation=it)
    found = run_content.metrics(trial, Population())
    assert found["counter.hbm_read_bytes"] == 4096 and "counter.matrix_share" not in found
    (tmp_path / "run").mkdir()
    artifacts.write(tmp_path / "run", trial, Population())
    rows = json.loads((tmp_path / "run" / "counters.json").read_text())
    assert [row["kernel"] for row in rows] == ["gemm", "tail"] and rows[0]["counts"]["FETCH_SIZE"] == 3.0
    assert not any(
        name.startswith("counter")
        for name in run_content.metrics(trial.model_copy(update={"evaluation": evaluation()}), Population())
    )


def test_counters_are_told_as_text_and_as_json() -> None:
    text = "\n".join(resources.counter_lines((LARGE, SMALL)))
    assert "counters by rocprofv3" in text and "2 cases" in text and "no times" in text
    assert "large, gemm: 3.07 kB read from memory, 1.02 kB written; occupancy 50 %" in text
    assert list(resources.counter_lines(())) == []
    found = summaries.counters(evaluation(counters=(LARGE, SMALL)))
    assert found is not None and found["by"] == "rocprofv3" and found["total"]["hbm_read_bytes"] == 4096
    assert summaries.counters(evaluation()) is None


# which tool


@pytest.mark.parametrize(("vendor", "tool"), [("rocm", "rocprofv3"), ("cuda", "ncu")])
def test_a_machine_without_a_profiler_says_so(vendor: str, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(profiler, "PLACES", ("/nowhere/else",))
    found = profiler.find(vendor)
    assert isinstance(found, str) and found.startswith(f"no {tool}: ") and "\n" not in found


def test_ncu_without_permission_names_the_module_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool, parameters = tmp_path / "ncu", tmp_path / "params"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    parameters.write_text("EnableMSI: 1\nRmProfilingAdminOnly: 1\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(profiler, "PARAMETERS", parameters)
    assert "NVreg_RestrictProfilingToAdminUsers=0" in str(profiler.find("cuda"))
    parameters.write_text("RmProfilingAdminOnly: 0\n")
    assert isinstance(profiler.find("cuda"), Profiler)
    with pytest.raises(CountingError, match="NVreg_RestrictProfilingToAdminUsers=0"):
        ncu.read("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access the counters\n")


def test_only_kernels_that_were_timed_on_a_gpu_are_counted(judge: Judge) -> None:
    evaluator = judge("identity")
    assert not counting.wanted(evaluator, evaluation())  # on a CPU
    said = counting.without(evaluation(), "no ncu:\nit is not here").environment
    assert said == {"counters": "none: no ncu: it is not here"}


# the subject, confined


@pytest.fixture
def ready(judge: Judge, tmp_path: Path) -> Iterator[Callable[[str, str], workspace.Scene]]:
    evaluator = judge("identity")

    def make(source: str, language: str) -> workspace.Scene:
        kernel = Kernel.model_validate({"name": "k00001", "language": language, "source": source})
        return workspace.prepare(evaluator, kernel, evaluator.profile.benchmarks, tmp_path, "")

    yield make


def play(it: workspace.Scene, kind: str, timeout_s: float = 60) -> tuple[int | None, str]:
    line = enclosed.command(it.program, it.folder, "cpu", kind, ())
    return enclosed.run(line, it.folder, "cpu", timeout_s, threading.Event())


TORCH = """
import pathlib

def custom_kernel(data):
    x, out = data
    with pathlib.Path("calls").open("a") as file:
        file.write(f"{x.numel()} ")
    return out.copy_(x)
"""


@pytest.mark.parametrize("kind", ["enclosure", ""])
def test_the_subject_calls_a_kernel_twice_on_each_case(
    kind: str, ready: Callable[[str, str], workspace.Scene], pool: WorkerPool
) -> None:
    it = ready(TORCH, "triton")
    assert play(it, pool.enclosure if kind else "") == (0, "")
    assert (it.folder / "calls").read_text().split() == ["131072", "524288", "2097152"] * 2
    assert it.cases == ("size131072", "size524288", "size2097152")


def test_the_subject_gets_what_was_built_for_the_kernel(
    ready: Callable[[str, str], workspace.Scene], pool: WorkerPool
) -> None:
    it = ready((ROOT / "problems/identity/seeds/cpp_blocked.py").read_text(), "cpp")
    assert len(list((it.folder / target_process.BUILDS).iterdir())) == 1
    assert play(it, pool.enclosure) == (0, "")


EXTENSION = """
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <Python.h>
#include <cstring>

static PyObject *copy(PyObject *, PyObject *given) {
    unsigned long long from, to, bytes;
    if (!PyArg_ParseTuple(given, "KKK", &from, &to, &bytes)) return nullptr;
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"copy", copy, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "copies", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_copies() { return PyModule_Create(&module); }
'''
native = load_inline("copies", SOURCE, no_implicit_headers=True, with_pytorch_error_handling=False)

def custom_kernel(data):
    x, out = data
    native.copy(x.data_ptr(), out.data_ptr(), x.nbytes)
    return out
"""


def test_the_subject_gets_the_extension_that_was_built_for_the_kernel(
    ready: Callable[[str, str], workspace.Scene], pool: WorkerPool
) -> None:
    it = ready(EXTENSION, "hip")
    assert len(list((it.folder / target_process.BUILDS).iterdir())) == 1
    assert play(it, pool.enclosure) == (0, "")


def test_what_is_handed_over_holds_no_seed_and_no_expected_output(ready: Callable[[str, str], workspace.Scene]) -> None:
    it = ready(TORCH, "triton")
    request = json.loads((it.folder / target_process.REQUEST).read_text())
    assert set(request) == {"profiler", "device", "cases", "limits"}
    assert all(set(case) == {"data", "sizes"} for case in request["cases"])
    x, out = (it.folder / "0.bin").read_bytes()[:262144], (it.folder / "0.bin").read_bytes()[262144:]
    assert len(out) == 262144 and len(set(out)) == 1 and x != out  # garbage where the output goes


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (f"open({str(ROOT / 'params.yaml')!r}).read()", "params.yaml"),
        ("import socket; socket.socket()", "ermission"),
        (f"open({str(ROOT / 'written')!r}, 'w')", "written"),
        ("import os; os.fork()", ""),
        ("raise RuntimeError('what it says')", "what it says"),
    ],
)
def test_the_subject_is_confined(
    code: str, words: str, ready: Callable[[str, str], workspace.Scene], pool: WorkerPool
) -> None:
    if pool.enclosure == "":
        pytest.skip("this system keeps no files from workers")
    it = ready(f"{code}\n{TORCH}", "triton")
    for kind in {pool.enclosure, *([""] if landlock.version() else [])}:
        status, text = play(it, kind)
        assert status not in (0, None) and words in text


def test_no_key_of_ours_is_in_its_environment(
    ready: Callable[[str, str], workspace.Scene], pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXAMPLE_API_KEY", "very secret")
    it = ready(f"import os\nassert 'EXAMPLE_API_KEY' not in os.environ, 'seen'\n{TORCH}", "triton")
    assert play(it, pool.enclosure) == (0, "")


def test_what_takes_too_long_or_is_stopped_is_ended(
    ready: Callable[[str, str], workspace.Scene], pool: WorkerPool
) -> None:
    it = ready(f"import time\ntime.sleep(100)\n{TORCH}", "triton")
    for kind in (pool.enclosure, ""):
        assert play(it, kind, timeout_s=3)[0] is None


def test_what_a_program_leaves_behind_is_ended(tmp_path: Path) -> None:
    """A keeper ends what has left its group and its parent."""
    code = (
        "import os, subprocess, sys; p = subprocess.Popen(['sleep', '1000'], start_new_session=True);"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid)); sys.exit(7)"
    )
    line = [sys.executable, "-P", "-S", "-m", "kernel_scientist.profile.supervisor", sys.executable, "-c", code]
    done = subprocess.run(line, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60, check=False)
    assert done.returncode == 7
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


# the tools, as far as they can be played here: each is a program that leaves the table its documentation describes


PLAYED = """#!{python}
import sys
arguments = sys.argv[1:]
{code}
"""


def tool(folder: Path, name: str, code: str) -> Profiler:
    program = folder / name
    program.write_text(PLAYED.format(python=sys.executable, code=code))
    program.chmod(0o755)
    return Profiler("ncu" if name == "ncu" else "rocprofv3", str(program), (str(folder),))


def read_by(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, tool_found: Profiler | str, timeout_s: float = 60
) -> Evaluation:
    evaluator = judge("identity").with_harness(Harness(counters_timeout_s=timeout_s))
    evaluator.machine = MI300X
    monkeypatch.setattr(profiler, "find", lambda vendor: tool_found)
    kernel = Kernel(name="k00001", language="triton", source=TORCH)
    return counting.count(evaluator, kernel, evaluation())


def test_groups_that_fail_are_named_and_the_others_kept(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"""
import pathlib
names = arguments[1:arguments.index("--output-format")]
if "OccupancyPercent" in names:
    sys.exit("Request exceeds the capabilities of the hardware to collect")
out = pathlib.Path(arguments[arguments.index("-d") + 1]) / "pass_1"
out.mkdir()
lines = [{HEADER!r}]
for number, kernel in enumerate(["warm", *[{MARKER!r}, "copy", {MARKER!r}] * 3]):
    for name in names:
        lines.append(f'0,{{number}},1,1,1,1,64,1,"{{kernel}}",64,0,0,8,0,16,"{{name}}",4,1,2')
(out / "counters_counter_collection.csv").write_text("\\n".join(lines))
"""
    found = read_by(judge, monkeypatch, tool(tmp_path, "rocprofv3", code))
    assert found.verdict is Verdict.OK and found.timings == evaluation().timings and found.seconds["count"] > 0
    assert [c.case for c in found.counters] == ["size131072", "size524288", "size2097152"]
    assert found.counters[0].counts["SQ_WAVES"] == 4 and found.counters[0].figures.l2_hit_rate == 0.5
    said = found.environment["counters"]
    assert said.startswith("rocprofv3, 3 cases; not counted: OccupancyPercent: ") and "exceeds" in said


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("rocprofv3", "sys.exit('no GPU here')", "ended with status 1: no GPU here"),
        ("rocprofv3", "pass", "left no table"),
        ("ncu", "print('==ERROR== ERR_NVGPUCTRPERM - no permission'); sys.exit(1)", "NVreg_RestrictProfiling"),
        ("ncu", "import os; os.mkfifo(arguments[arguments.index('--log-file') + 1])", "no plain file"),
        ("ncu", "open(arguments[arguments.index('--log-file') + 1], 'w').write('\\0,ID,,')", "left no table"),
        ("ncu", "import time; time.sleep(100)", "longer than harness.counters_timeout_s"),
    ],
)
def test_a_profiler_that_fails_is_a_sentence_and_no_verdict(
    name: str, code: str, words: str, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read_by(judge, monkeypatch, tool(tmp_path, name, code), timeout_s=4 if "sleep" in code else 60)
    assert found.verdict is Verdict.OK and found.counters == () and found.timings == evaluation().timings
    assert found.environment["counters"].startswith("none: ") and words in found.environment["counters"]


def test_a_busy_device_is_a_sentence(judge: Judge) -> None:
    name = f"test-{os.getpid()}"
    harness = Harness(device_wait_s=0.1)
    lab = SimpleNamespace(
        target=Target(name, "cuda", name), params=Params(harness=harness), evaluator=judge("identity")
    )
    with device_lock.device(name, 1):
        found = count_kernel.fn(lab, Kernel(name="k00001", language="triton", source=TORCH), evaluation())  # type: ignore
    assert found.environment["counters"].startswith(f"none: device {name} was busy for 0.1 s")
    assert found.timings == evaluation().timings and found.verdict is Verdict.OK


def test_ncu_is_asked_again_without_what_it_does_not_know(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ncu_table(
        [(SPIN, {}), ("copy", {"dram__bytes_read.sum": "64"}), (SPIN, {})] * 3, {"dram__bytes_read.sum": "byte"}
    )
    code = f"""
metrics = arguments[arguments.index("--metrics") + 1]
with open(arguments[arguments.index("--log-file") + 1], "w") as file:
    if "lts__t_sectors.sum" in metrics:
        file.write("==ERROR== Failed to find metric regex:^lts__t_sectors.(sum|min)$\\n")
        sys.exit(1)
    file.write({table!r})
"""
    found = read_by(judge, monkeypatch, tool(tmp_path, "ncu", code))
    assert found.environment["counters"] == "ncu, 3 cases"
    assert {c.figures.hbm_read_bytes for c in found.counters} == {64}


@pytest.mark.gpu
def test_the_profiler_of_this_gpu_counts_a_triton_kernel() -> None:
    from kernel_scientist import problems

    with WorkerPool(Harness(), "cuda") as shop:
        evaluator = Evaluator(problems.find("identity"), "full", shop.harness, shop)
        source = (ROOT / "problems/identity/seeds/triton_tiled.py").read_text()
        found = counting.count(evaluator, Kernel(name="k00001", language="triton", source=source), evaluation())
    said = found.environment["counters"]
    if said.startswith("none: no ") or ncu.FORBIDDEN in said:
        pytest.skip(said)
    assert found.counters, said
    for it in found.counters:
        moved = (it.figures.hbm_read_bytes or 0) + (it.figures.hbm_written_bytes or 0)
        assert moved > 0 and it.dispatches == 1
