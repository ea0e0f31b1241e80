"""Counting: the tool is found, runs over a kernel, and every failure is one sentence."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.profile import counting, ncu, profiler
from kernel_scientist.profile.dispatches import MARKER
from kernel_scientist.profile.profiler import Profiler
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import device_lock
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT
from tests.profile.profiler_tables import HEADER, SPIN, TORCH, evaluation, ncu_table

EvaluatorFor = Callable[[str], Evaluator]


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


def test_only_kernels_that_were_timed_on_a_gpu_are_counted(evaluator_for: EvaluatorFor) -> None:
    evaluator = evaluator_for("identity")
    assert not counting.wanted(evaluator, evaluation())  # on a CPU
    said = counting.without(evaluation(), "no ncu:\nit is not here").environment
    assert said == {"counters": "none: no ncu: it is not here"}


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
    evaluator_for: EvaluatorFor, monkeypatch: pytest.MonkeyPatch, tool_found: Profiler | str, timeout_s: float = 60
) -> Evaluation:
    evaluator = evaluator_for("identity").with_harness(Harness(counters_timeout_s=timeout_s))
    evaluator.machine = MI300X
    monkeypatch.setattr(profiler, "find", lambda vendor: tool_found)
    kernel = Kernel(name="k00001", language="triton", source=TORCH)
    return counting.count(evaluator, kernel, evaluation())


def test_groups_that_fail_are_named_and_the_others_kept(
    evaluator_for: EvaluatorFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    found = read_by(evaluator_for, monkeypatch, tool(tmp_path, "rocprofv3", code))
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
        ("ncu", "import os; os.mkfifo(arguments[arguments.index('--log-file') + 1])", "left no table"),
        ("ncu", "open(arguments[arguments.index('--log-file') + 1], 'w').write('\\0,ID,,')", "left no table"),
        ("ncu", "import time; time.sleep(100)", "longer than harness.counters_timeout_s"),
    ],
)
def test_a_profiler_that_fails_is_a_sentence_and_no_verdict(
    name: str, code: str, words: str, evaluator_for: EvaluatorFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read_by(evaluator_for, monkeypatch, tool(tmp_path, name, code), timeout_s=4 if "sleep" in code else 60)
    assert found.verdict is Verdict.OK and found.counters == () and found.timings == evaluation().timings
    assert found.environment["counters"].startswith("none: ") and words in found.environment["counters"]


def test_a_busy_device_is_a_sentence(evaluator_for: EvaluatorFor) -> None:
    # Imported here, so that the test of a GPU below runs on machines without Prefect and what campaigns need.
    from kernel_scientist.campaign.evaluation_context import EvaluationContext
    from kernel_scientist.campaign.targets.local import Local
    from kernel_scientist.hardware.addresses import Address
    from kernel_scientist.records.params import Params
    from tasks.timing import count_kernel

    name = f"test-{os.getpid()}"
    harness = Harness(device_wait_s=0.1)
    evaluator = evaluator_for("identity")
    params = Params(harness=harness)
    target = Local(params, evaluator.problem, Address(name, "cuda", name), evaluator)
    lab = EvaluationContext(params, evaluator.problem, target)
    with device_lock.device(name, 1):
        found = count_kernel.fn(lab, Kernel(name="k00001", language="triton", source=TORCH), evaluation())  # type: ignore
    assert found.environment["counters"].startswith(f"none: device {name} was busy for 0.1 s")
    assert found.timings == evaluation().timings and found.verdict is Verdict.OK


def test_ncu_is_asked_again_without_what_it_does_not_know(
    evaluator_for: EvaluatorFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    found = read_by(evaluator_for, monkeypatch, tool(tmp_path, "ncu", code))
    assert found.environment["counters"] == "ncu, 3 cases"
    assert {c.figures.hbm_read_bytes for c in found.counters} == {64}


def test_one_case_is_counted_if_it_alone_is_asked_for(
    evaluator_for: EvaluatorFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ncu_table([(SPIN, {}), ("copy", {"dram__bytes_read.sum": "64"}), (SPIN, {})], {"dram__bytes_read.sum": "b"})
    code = f"open(arguments[arguments.index('--log-file') + 1], 'w').write({table!r})"
    evaluator, found = evaluator_for("identity"), tool(tmp_path, "ncu", code)
    monkeypatch.setattr(profiler, "find", lambda vendor: found)
    kernel, case = Kernel(name="k00001", language="triton", source=TORCH), evaluator.profile.benchmarks[1]
    counted = counting.count(evaluator, kernel, evaluation(), (case,))
    assert [one.case for one in counted.counters] == [case.name] and counted.environment["counters"] == "ncu, 1 cases"


@pytest.mark.gpu
def test_the_profiler_of_this_gpu_counts_a_triton_kernel() -> None:
    from kernel_scientist import problems

    with WorkerPool(Harness(noise_runs=0, stages=1, blocks=2, pairs=0), "cuda") as shop:
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
