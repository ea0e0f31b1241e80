"""HIP submissions with a timed case, through the evaluator: counted and predicted, or right without a time."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.predicted import PredictedEvaluator
from kernel_scientist.gpu.machine.counts import MOST_LAUNCHES, MOST_OPERATIONS, MOST_STORAGES
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.hardware import gpus
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.workers import prepared
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

TOOLS = hip.find()
pytestmark = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
SEED = (ROOT / "problems/identity/seeds/hip_naive.py").read_text()
CALL = "    module.copy(x, out)\n"
CHAIN = """
    volatile int* flags = ready;  // each workgroup waits for the one before it
    if (threadIdx.x == 0) {
        if (blockIdx.x) while (!flags[blockIdx.x - 1]) {}
        flags[blockIdx.x] = 1;
    }
"""


@pytest.fixture(scope="module")
def evaluator() -> Iterator[PredictedEvaluator]:
    problem = problems.find("identity")
    harness = Harness(call_timeout_s=120, import_timeout_s=120, noise_runs=0)
    settings = prepared.simulated(problem, gpus.MI300X, threads=1)
    with WorkerPool(harness, "cpu", machine=settings) as pool:
        evaluator = PredictedEvaluator(problem, "auto", harness, pool, gpus.MI300X)
        profile = evaluator.profile
        evaluator.profile = replace(
            profile, tests=profile.tests[:1], held_out=(), vary={}, benchmarks=profile.benchmarks[-1:]
        )
        yield evaluator


def evaluated(evaluator: PredictedEvaluator, call: str) -> Evaluation:
    """Evaluate the seed with another call."""
    kernel = Kernel(name="k", language="hip", source=SEED.replace(CALL, call))
    return evaluator.check(kernel, evaluator.compile(kernel))


@pytest.mark.parametrize(("language", "line"), [("hip", "out[i] = x[i]"), ("triton", "tl.store(")])
def test_a_profile_names_the_lines_that_take_time(evaluator: PredictedEvaluator, language: str, line: str) -> None:
    source = SEED if language == "hip" else (ROOT / "problems/identity/seeds/triton_naive.py").read_text()
    kernel = Kernel(name="k", language=language, source=source)  # type: ignore[arg-type]
    found = evaluator.check(kernel, evaluator.compile(kernel))
    (prediction,) = found.predictions
    assert any(line in one.text for one in prediction.lines), prediction.lines
    assert {one.limit for one in prediction.lines} < set(prediction.breakdown_us), (
        "not that of the case, which launches"
    )
    for one in prediction.lines:
        assert one.text == source.splitlines()[one.line - 1].strip()
        assert sum(one.causes.values()) <= one.share + 0.001
    assert 0.9 < sum(one.share for one in prediction.lines) <= 1.001


HELPERS = """
__device__ float widened(unsigned short x) { return __uint_as_float((unsigned int)x << 16); }

"""


def through_a_helper(index: str) -> str:
    """Return the seed, whose load goes through a helper."""
    line = f"if (i < size) out[i] = __float_as_uint(widened(x[{index}])) >> 16;"
    source = SEED.replace("if (i < size) out[i] = x[i];", line)
    return source.replace("__global__", f"{HELPERS}__global__", 1)


def test_what_a_small_function_takes_is_told_of_the_line_that_calls_it(evaluator: PredictedEvaluator) -> None:
    source = through_a_helper("i")
    kernel = Kernel(name="k", language="hip", source=source)
    (prediction,) = evaluator.check(kernel, evaluator.compile(kernel)).predictions
    (own,) = (one for one in prediction.lines if "widened(x[i])" in one.text)
    assert own.causes["wait"] > 0.2 and not own.callers
    assert not any("__device__" in one.text for one in prediction.lines), prediction.lines


def test_a_defect_in_an_inlined_function_names_the_line_that_calls_it(evaluator: PredictedEvaluator) -> None:
    source = through_a_helper("i + 64")
    kernel = Kernel(name="k", language="hip", source=source)
    found = evaluator.check(kernel, evaluator.compile(kernel))
    assert found.verdict is Verdict.INCORRECT and "out-of-bounds read" in found.reason, found.reason
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "widened(x[i + 64])" in text)
    assert f"line {line} (" in found.reason, found.reason


def predicted_us(found: Evaluation) -> float:
    assert found.verdict is Verdict.OK, found.reason
    (one,) = found.predictions
    return one.time_us


def missed(found: Evaluation) -> str:
    assert found.verdict is Verdict.OK and not found.predictions, found.reason
    assert found.compile is not None
    (why,) = found.compile.missed
    return why


def test_launches_and_torch_s_operations_between_them_are_added(evaluator: PredictedEvaluator) -> None:
    once, twice, cleared = (
        predicted_us(evaluated(evaluator, call)) for call in (CALL, 2 * CALL, f"{CALL}    out.zero_()\n{CALL}")
    )
    assert once < twice < cleared


def test_an_operation_on_many_tensors_is_counted_whole(evaluator: PredictedEvaluator) -> None:
    pieces = f"    x = torch.cat(x.chunk({MOST_STORAGES + 36}))\n"
    copied = predicted_us(evaluated(evaluator, f"    x = x.clone()\n{CALL}"))
    assert predicted_us(evaluated(evaluator, pieces + CALL)) == pytest.approx(copied, rel=0.02)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (f"    for _ in range({MOST_OPERATIONS + 1}): x.neg()\n{CALL}", f"more than {MOST_OPERATIONS} operations"),
        (f"    for _ in range({MOST_LAUNCHES + 1}): module.copy(x, out)\n", "more than a report holds"),
        (f"    torch.linalg.norm(x.float())\n{CALL}", "no time of torch's `linalg_vector_norm`"),
    ],
)  # fmt: skip
def test_what_is_not_predicted_is_right_all_the_same(evaluator: PredictedEvaluator, call: str, why: str) -> None:
    assert why in missed(evaluated(evaluator, call))


def test_workgroups_that_wait_for_others_without_atomic_operations(evaluator: PredictedEvaluator) -> None:
    source = SEED.replace("unsigned short* out, long size) {", f"unsigned short* out, long size, int* ready) {{{CHAIN}")
    source = source.replace("torch::Tensor out)", "torch::Tensor out, torch::Tensor flags)")
    source = source.replace(".data_ptr(), size);", ".data_ptr(), size, (int*)flags.data_ptr());")
    call = "    module.copy(x, out, torch.zeros(x.numel() // 256 + 1, dtype=torch.int32, device=x.device))\n"
    kernel = Kernel(name="k", language="hip", source=source.replace(CALL, call))
    assert predicted_us(evaluator.check(kernel, evaluator.compile(kernel))) > 0
