"""What a submission launches on a GPU that is not here: the real compiler, in its confined process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist import problems
from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.evaluation.predicted import PredictedEvaluator
from kernel_scientist.gpu.capture import inspect
from kernel_scientist.gpu.capture.inspect import Inspection
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.gpu.model import predict
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.hardware import gpus, occupancy
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

WILD = ROOT / "tests/gpu/capture/submissions"
CASES = (Case(sizes={"rows": 4096, "cols": 4096}, seed=1), Case(sizes={"rows": 2048, "cols": 16384}, seed=2))


def inspected(
    source: str, problem: str = "rmsnorm", gpu: str = "mi300x", cases: tuple[Case, ...] = CASES, counts: bool = False
) -> Inspection:
    return inspect.inspect(source, problems.find(problem), cases, gpus.named(gpu), 120, counts)


def wild(name: str, gpu: str = "mi300x") -> Inspection:
    return inspected((WILD / f"{name}.py").read_text(), gpu=gpu)


@pytest.fixture
def modeller(pool: WorkerPool) -> Callable[[str], PredictedEvaluator]:
    def make(problem: str) -> PredictedEvaluator:
        return PredictedEvaluator(problems.find(problem), "auto", pool.harness, pool, gpus.MI300X)

    return make


@pytest.mark.slow
def test_the_seed_gemm_is_seen_as_mi300_would_run_it() -> None:
    source = (ROOT / "problems/fp8-blockwise-gemm/seeds/triton_tiled.py").read_text()
    problem = problems.find("fp8-blockwise-gemm")
    cases = problem.profile("full").benchmarks[:3]
    found = inspected(source, "fp8-blockwise-gemm", cases=cases, counts=True)
    assert found.report.ok and not found.report.missed
    (code,) = found.report.objects
    assert code.arch == "gfx942" and all("fp8_fp8" in name for name in code.mfma) and sum(code.mfma.values()) > 0
    assert [launch.case for launch in found.report.launches] == [case.name for case in cases]
    text = assembly.get(code.digest)
    assert text is not None and "v_mfma_f32" in text
    assert f"; NumVgprs: {code.vgpr}\n" in text and f"; NumAgprs: {code.agpr}\n" in text
    assert code.lds_bytes <= 65536 and code.spills == 0
    assert occupancy.occupancy("gfx942", *code.needs)[0] == code.occupancy
    for prediction, case in zip(found.predictions(problem, cases), cases, strict=True):
        flops = sum(sum(load.traffic.flops.values()) for load in found.loads(case.name))
        assert flops == pytest.approx(problem.work(case).flops)  # the sizes divide: no padding
        unique = sum(load.traffic.unique_bytes for load in found.loads(case.name))
        assert unique == pytest.approx(problem.work(case).bytes, rel=0.25)
        assert prediction.time_us > prediction.floor_us and "MI300X" in prediction.machine


def test_workspaces_lie_where_the_gpu_s_allocator_would_put_them() -> None:
    """In main memory torch aligns a large workspace to 64 bytes, so that each of its rows would begin inside a line."""
    source = """
import torch, triton, triton.language as tl

@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

def custom_kernel(data):
    x, weight, out = data
    half = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 64),)
    double[grid](x, half, x.numel(), BLOCK=64)
    double[grid](half, out, x.numel(), BLOCK=64)
    return out
"""
    case = CASES[0]
    launches = inspected(source, cases=(case,), counts=True).loads(case.name)
    x_bytes = 2 * case.whole("rows") * case.whole("cols")
    assert [one.traffic.lines_bytes for one in launches] == 2 * [2 * x_bytes], "each line once"


def test_autotuned_configurations_are_compiled_and_one_is_chosen() -> None:
    found = wild("autotuned")
    assert not found.report.missed
    assert {launch.autotuned for launch in found.report.launches} == {3}
    assert {launch.constants["BLOCK"] for launch in found.report.launches} == {"4096", "16384"}  # the heuristic
    assert len(found.report.objects) == 6, "every configuration of both sizes"


@pytest.mark.slow
def test_several_kernels_and_helpers_are_seen_in_order() -> None:
    found = wild("several")
    assert [launch.kernel for launch in found.report.launches] == ["scales", "rows"] * 2
    assert found.report.launches[1].grid == (304, 1, 1), "it asked how many units there are"
    assert found.report.launches[0].grid == (4096, 1, 1)


def test_descriptors_and_block_pointers() -> None:
    found = inspected((WILD / "descriptors.py").read_text(), counts=True)
    assert {launch.kernel for launch in found.report.launches} == {"copy"} and not found.report.missed
    traffic = found.loads(CASES[0].name)[0].traffic
    assert traffic.unique_bytes == pytest.approx(2 * 2 * 4096 * 4096)


@pytest.mark.parametrize("gpu", ["mi355x", "h100"])
def test_other_architectures(gpu: str) -> None:
    found = wild("several", gpu)
    assert {code.arch for code in found.report.objects} == {gpus.named(gpu).arch} and not found.report.missed


@pytest.mark.slow
def test_lds_over_the_limit_is_refused_from_the_code_object(modeller: Callable[[str], PredictedEvaluator]) -> None:
    kernel = Kernel(name="k", language="triton", source=(WILD / "too_much_lds.py").read_text())
    evaluation = modeller("rmsnorm").compile(kernel)
    assert evaluation.verdict is Verdict.COMPILE_ERROR
    assert "262144" in evaluation.reason and "65536" in evaluation.reason and "LDS" in evaluation.reason
    assert inspected(kernel.source, gpu="h100").report.ok is False


def test_a_launch_of_too_many_threads_is_refused_with_its_line(modeller: Callable[[str], PredictedEvaluator]) -> None:
    seed = (ROOT / "problems/identity/seeds/triton_naive.py").read_text()
    source = seed.replace("size, BLOCK=BLOCK)", "size, BLOCK=BLOCK, num_warps=32)")
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "num_warps=32" in text)
    found = modeller("identity").compile(Kernel(name="k", language="triton", source=source))
    assert found.verdict is Verdict.COMPILE_ERROR and f"line {line}: OutOfResources" in found.reason, found.reason
    assert "threads of a workgroup of copy_kernel on gfx942, Required: 2048, Hardware limit: 1024" in found.reason


def test_the_compiler_s_words_come_with_the_line() -> None:
    found = wild("refused")
    assert not found.report.ok and found.report.log.startswith("kernel.py, line 12: CompilationError")
    assert "undefined_name is not defined" in found.report.log


@pytest.mark.slow
def test_what_cannot_be_seen_is_named() -> None:
    source = (
        (WILD / "several.py").read_text().replace("m, n = x.shape", "m, n = x.shape\n    x.tolist()[0][-1].nonsense()")
    )
    found = inspected(source)
    assert found.report.ok and not found.report.launches
    assert len(found.report.missed) == 2 and "nonsense" in found.report.missed[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("import os\nos._exit(0)", Verdict.CRASHED),
        ("import pathlib\npathlib.Path('answer.json').write_text('{}')\nimport os\nos._exit(0)", Verdict.CRASHED),
        ("import ctypes\nctypes.string_at(8)", Verdict.CRASHED),
        ("while True: pass", Verdict.TIMEOUT),
        ("import subprocess\nsubprocess.run(['true'])", Verdict.CRASHED),
    ],
)
def test_a_hostile_submission_ends_as_a_failure(body: str, verdict: Verdict) -> None:
    problem = problems.find("identity")
    with pytest.raises(KernelFailure) as caught:
        inspect.inspect(body + "\ndef custom_kernel(data): ...", problem, (), gpus.MI300X, 12)
    assert caught.value.verdict is verdict


FORGED = """
import json, os, pathlib
{attack}
os._exit(0)
def custom_kernel(data): ...
"""


@pytest.mark.parametrize(
    "attack",
    [
        "os.mkfifo('answer.json')",
        "os.symlink('/dev/zero', 'answer.json')",
        "pathlib.Path('answer.json').write_bytes(bytes([0xff, 0xfe]) * 99)",
        "os.mkdir('answer.json')",
        "os.truncate(os.open('answer.json', os.O_CREAT | os.O_RDWR), 1 << 27)",
    ],
)
def test_an_answer_that_is_none_hangs_and_breaks_nothing(attack: str) -> None:
    with pytest.raises(KernelFailure) as caught:
        inspect.inspect(FORGED.format(attack=attack), problems.find("identity"), (), gpus.MI300X, 30)
    assert caught.value.verdict is Verdict.CRASHED


@pytest.mark.parametrize(
    "tale",
    [
        "code.object.__dict__['vgpr'] = 1",
        "code.object.__dict__['mix'] = ()",
        "code.object.__dict__['num_warps'] = 0",
    ],
)
def test_what_it_says_of_its_code_must_be_true(tale: str) -> None:
    source = (ROOT / "problems/identity/seeds/triton_naive.py").read_text()
    lie = f"""

import atexit
from kernel_scientist.gpu.capture import launches

honest = launches.LaunchRecorder._code


def lying(recorder, compiled):
    code = honest(recorder, compiled)
    {tale}
    return code


launches.LaunchRecorder._code = lying
"""
    cases = problems.find("identity").profile("full").benchmarks[:1]
    with pytest.raises(KernelFailure) as caught:
        inspected(source + lie, "identity", cases=cases)
    assert caught.value.verdict in (Verdict.REJECTED, Verdict.CRASHED)


def test_work_that_no_launch_does_is_not_predicted() -> None:
    """A small launch beside a library's product would be a very fast product."""
    problem = problems.find("rmsnorm")
    source = (ROOT / "problems/rmsnorm/seeds/triton_naive.py").read_text()
    little = source.replace("def custom_kernel(data: Data) -> torch.Tensor:", "def whole(data: Data) -> torch.Tensor:")
    little += "\n\ndef custom_kernel(data):\n    x, w, out = data\n    whole((x[:8], w, out[:8]))\n    return out\n"
    found = inspected(little, counts=True)
    assert found.report.launches and not found.predictions(problem, CASES)
    assert all("bytes of" in words and "that the case needs" in words for words in found.unpredicted(problem, CASES))


def test_a_kernel_is_not_judged_by_the_cases_that_it_likes() -> None:
    source = (ROOT / "problems/rmsnorm/seeds/triton_naive.py").read_text()
    body = "    assert data[0].shape[0] > 3000\n    return rest(data)\n"
    picky = f"{source}\n\nrest = custom_kernel\n\n\ndef custom_kernel(data):\n{body}"
    found = inspected(picky, counts=True)
    assert len(found.report.missed) == 1 and not found.predictions(problems.find("rmsnorm"), CASES)
    assert found.loads(CASES[0].name) and not found.loads(CASES[1].name)


def test_it_can_end_no_other_process() -> None:
    found = inspected("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n", "identity", cases=())
    assert found.report.log.startswith("kernel.py, line 2: PermissionError")


def test_no_file_of_ours_can_be_read_or_written(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a key")
    tries = f"""
        import os, pathlib, socket
        seen = []
        for attempt in (lambda: pathlib.Path({str(secret)!r}).read_text(),
                        lambda: pathlib.Path({str(tmp_path / "new")!r}).write_text("x"),
                        lambda: pathlib.Path({str(ROOT / "params.yaml")!r}).read_text()):
            try:
                attempt()
                seen.append("done")
            except OSError:
                pass
        if seen or any("KEY" in name for name in os.environ):
            raise RuntimeError("it could: " + str(seen))
        def custom_kernel(data): ...
        """
    lines = [line[8:] for line in tries.splitlines()]
    found = inspected("\n".join(lines), "identity", cases=())
    assert found.report.ok and not found.report.missed, found.report.log


def test_right_and_wrong_are_executed_with_the_gpu_s_own_arithmetic(
    modeller: Callable[[str], PredictedEvaluator],
) -> None:
    evaluator = modeller("identity")
    source = (ROOT / "problems/identity/seeds/triton_naive.py").read_text()
    right = evaluator.compile(Kernel(name="k", language="triton", source=source))
    assert right.verdict is Verdict.OK and right.by_model and not right.predictions and not right.timings
    cases = evaluator.problem.profile("full").benchmarks
    times = evaluator.predict(Kernel(name="k", language="triton", source=source), cases)
    assert [p.case for p in times] == [c.name for c in cases]
    hip = Kernel(name="h", language="hip", source="def custom_kernel(data): ...")
    assert "not executed" in evaluator.check(hip, right).reason


@pytest.mark.slow
def test_a_larger_tile_reads_less_and_fewer_units_take_longer() -> None:
    source = (ROOT / "problems/fp8-blockwise-gemm/seeds/triton_tiled.py").read_text()
    case = problems.find("fp8-blockwise-gemm").profile("full").benchmarks[:1]
    small, large = (
        inspected(
            KernelSource(source).with_tunables({"BLOCK_M": tile, "BLOCK_N": tile}).text,
            "fp8-blockwise-gemm",
            cases=case,
            counts=True,
        )
        for tile in (32, 128)
    )
    name = case[0].name
    lines = [sum(load.traffic.lines_bytes for load in found.loads(name)) for found in (small, large)]
    assert lines[0] > 2 * lines[1]
    load = large.loads(name)[0]
    slower = gpus.GPUS["mi355x"]
    full = predict.estimate(gpus.MI300X, load, Constants()).costs
    assert full.hbm > predict.estimate(slower, load, Constants()).costs.hbm, "MI355X has more bandwidth"
