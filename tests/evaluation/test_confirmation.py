"""What it takes to be confirmed, and the reason when a kernel is not."""

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation import confirmation
from kernel_scientist.evaluation.confirmation import decide
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.records.evaluation import Evaluation, Speedup, Timing
from kernel_scientist.records.factors import UNRESOLVED
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

TIMING = Timing(case="c", time_us=1.0, interval_us=(1.0, 1.0))


def speedup(interval: tuple[float, float]) -> Speedup:
    return Speedup(against=REFERENCE, ratio=1.2, interval=interval)


GOOD = (1.1, 1.3)


@pytest.mark.parametrize(
    ("public", "hidden", "words"),
    [
        (speedup(GOOD), speedup(GOOD), ""),
        (speedup(GOOD), speedup((1.01, 1.3)), ""),
        (speedup((0.99, 1.3)), speedup(GOOD), "on the public cases: 1.2x [0.99, 1.3]"),
        (speedup(GOOD), speedup((0.9, 1.3)), "on the held-out cases: 1.2x [0.9, 1.3]"),
        (speedup(UNRESOLVED), speedup(GOOD), "too few blocks to say"),
    ],
)
def test_a_kernel_is_confirmed_by_public_and_held_out_cases(public: Speedup, hidden: Speedup, words: str) -> None:
    evaluation = Evaluation(verdict=Verdict.OK, timings=(TIMING,), speedups=(public,))
    confirmed, why = decide(evaluation, [hidden], REFERENCE)
    assert confirmed is (words == "") and words in why


def test_a_wrong_kernel_is_not_confirmed_and_without_a_baseline_a_right_one_is() -> None:
    wrong = Evaluation(verdict=Verdict.INCORRECT, reason="it is wrong")
    assert decide(wrong, [], REFERENCE) == (False, "it is wrong")
    assert decide(Evaluation(verdict=Verdict.OK), [], None)[0]
    assert not decide(Evaluation(verdict=Verdict.OK), [], REFERENCE)[0]


def test_a_problem_without_held_out_cases_is_decided_on_the_public_ones() -> None:
    """As a KernelBench file that names no sizes."""
    evaluation = Evaluation(verdict=Verdict.OK, timings=(TIMING,), speedups=(speedup(GOOD),))
    confirmed, why = decide(evaluation, [], REFERENCE)
    assert confirmed and "the problem has no held-out ones" in why


def test_held_out_cases_have_times_and_speedups_of_their_own() -> None:
    harness = Harness(stages=1, pairs=0, blocks=2, noise_runs=0)
    with WorkerPool(harness) as pool:
        problem = problems.load(ROOT / "problems/identity")
        evaluator = Evaluator(problem, "cpu", harness, pool)
        kernel = Kernel(name="k", language="cpp", source=problem.seeds("cpp")[-1].read_text())
        sources = [TimedSource.of(kernel), evaluator.reference()]
        runs = [confirmation.measure(evaluator, sources, blocks=1)]
        found = confirmation.conclude(evaluator, Evaluation(verdict=Verdict.OK), runs, sources, REFERENCE)
    held_out = [case.name for case in evaluator.profile.held_out]
    assert [timing.case for timing in found.held_out] == held_out
    assert [list(speedup.cases) for speedup in found.held_out_speedups] == [held_out]
    assert list(found.evaluation.speedups[0].cases) == [case.name for case in evaluator.profile.benchmarks]
