"""The memory checker through the evaluator: what an interpreted kernel does to memory reaches its verdict."""

from collections.abc import Iterator
from dataclasses import asdict, replace

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluate.predicted import PredictedEvaluator
from kernel_scientist.gpu.capture import inspect
from kernel_scientist.hardware import gpus
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.scientist.context import bug_taxonomy
from kernel_scientist.workers.pool import WorkerPool

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n"
SEED = (
    HEAD + "def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n"
    "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)\n\n\n"
    "def custom_kernel(data):\n    x, out = data\n    n = x.numel()\n"
    "    copy[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)\n    return out\n"
)


@pytest.fixture(scope="module")
def evaluator() -> Iterator[PredictedEvaluator]:
    problem = problems.find("identity")
    interpreter = {"facts": asdict(inspect.facts(gpus.MI300X)), "writes": problem.writes, "updates": problem.updates}
    harness = Harness(call_timeout_s=20, import_timeout_s=20, noise_runs=0)
    with WorkerPool(harness, "cpu", ("kernel_scientist.gpu.interpreter.worker_setup",), interpreter) as shop:
        evaluator = PredictedEvaluator(problem, "auto", harness, shop, gpus.MI300X)
        # shapes that are drawn are executed in full; of a timed case (the smallest has four programs) only some are
        large = evaluator.profile.benchmarks[1:]
        evaluator.profile = replace(evaluator.profile, vary={"size": (1, 5000, 1)}, benchmarks=large)
        yield evaluator


def evaluated(evaluator: PredictedEvaluator, source: str) -> Evaluation:
    kernel = Kernel(name="k", language="triton", source=source)
    return evaluator.check(kernel, Evaluation(verdict=Verdict.OK, by_model=True))


def test_a_sound_kernel_is_right_and_covered(evaluator: PredictedEvaluator) -> None:
    found = evaluated(evaluator, SEED)
    assert found.verdict is Verdict.OK, found.reason
    assert found.coverage.startswith("interpreted: all programs of ") and "undefined" not in str(found.labels)


def test_it_runs_on_the_gpu_that_is_pretended(evaluator: PredictedEvaluator) -> None:
    asks = (
        "    assert x.is_cuda and torch.version.hip\n"
        "    assert torch.cuda.get_device_properties(0).gcnArchName.startswith('gfx942')\n"
    )
    assert evaluated(evaluator, SEED.replace("    n = x.numel()\n", asks + "    n = x.numel()\n")).verdict is Verdict.OK


@pytest.mark.parametrize(
    ("before", "after", "kind", "line", "bug"),
    [
        (", mask=at < n), mask", "), mask", "out-of-bounds read", 9, "B.3"),
        ("mask=at < n), mask=at < n)", "mask=at < n))", "out-of-bounds write", 9, "B.3"),
        ("out_ptr + at,", "out_ptr + at % 256,", "write race", 9, "C.1"),
        ("tl.load(x_ptr", "tl.load(out_ptr", "uninitialised read", 9, "B.2"),
    ],
)
def test_a_defect_is_incorrect_with_its_line(
    evaluator: PredictedEvaluator, before: str, after: str, kind: str, line: int, bug: str
) -> None:
    found = evaluated(evaluator, SEED.replace(before, after))
    assert found.verdict is Verdict.INCORRECT
    assert kind in found.reason and f"line {line}" in found.reason and "_ptr in copy" in found.reason, found.reason
    assert bug_taxonomy.classify(found).id == bug


def test_undefined_lanes_are_a_warning(evaluator: PredictedEvaluator) -> None:
    source = SEED.replace(
        "tl.load(x_ptr + at, mask=at < n)",
        "tl.load(x_ptr + at, mask=at < n) + 0 * tl.sum(tl.load(x_ptr + at, mask=at < n))",
    )
    found = evaluated(evaluator, source)
    assert found.verdict is Verdict.OK and "measured:undefined-lanes" in found.labels
    assert any(e.startswith("memory, warning: mask mistake") for e in found.evidence)


def test_a_large_case_is_watched_in_part(evaluator: PredictedEvaluator) -> None:
    timed = "n > 5000"  # timed cases only: listed and drawn checking cases are smaller
    beyond = SEED.replace("x_ptr, out_ptr, n,", "x_ptr, out_ptr, n, more,").replace("x_ptr + at,", "x_ptr + at + more,")
    beyond = beyond.replace("(x, out, n,", f"(x, out, n, int({timed}),")
    found = evaluated(evaluator, beyond)
    assert found.verdict is Verdict.INCORRECT, found  # by its values, or if the last program is drawn by its access
    sound = evaluated(evaluator, SEED)
    assert "tiles compared on 6 of 6 timed cases" in sound.coverage, sound.coverage
    slow = SEED.replace("    n = x.numel()\n", f"    n = x.numel()\n    while {timed}: pass\n")
    evaluator.harness = evaluator.driver.harness = evaluator.harness.model_copy(update={"tile_timeout_s": 3})
    found = evaluated(evaluator, slow)
    assert found.verdict is Verdict.TIMEOUT and "a tile: its call used more than 3 s of CPU time" in found.reason
