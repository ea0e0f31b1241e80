"""The seeds are right: C++ on this CPU, Triton as code for gfx942 that is executed here."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.hardware import gpus
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.prepared import simulated
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

SEEDS = sorted(p for p in (ROOT / "problems").glob("*/seeds/*.py") if not p.stem.startswith("hip"))  # see test_hip

SHORT = Harness(call_timeout_s=60, noise_runs=0, stages=1, blocks=2, pairs=0)
"""Little timing, as a GPU is here for minutes: these tests ask whether there is a time, not which."""


@pytest.fixture(scope="module")
def executing() -> Iterator[Callable[[Problem], WorkerPool]]:
    """Return the pool whose workers execute a problem's GPU kernels in checking runs, as in a campaign."""
    pools: dict[tuple[int, ...], WorkerPool] = {}
    with ExitStack() as opened:

        def pool(problem: Problem) -> WorkerPool:
            if problem.writes not in pools:
                new = WorkerPool(Harness(call_timeout_s=60), machine=simulated(problem, gpus.MI300X))
                pools[problem.writes] = opened.enter_context(new)
            return pools[problem.writes]

        yield pool


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.slow) if p.stem.startswith("triton") else p for p in SEEDS],
    ids=lambda p: f"{p.parts[-3]}-{p.stem}",
)
def test_a_seed_is_right(
    path: object, evaluator_for: Callable[[str], Evaluator], executing: Callable[[Problem], WorkerPool]
) -> None:
    problem, language = path.parts[-3], path.stem.split("_")[0]  # type: ignore[attr-defined]
    kernel = Kernel(name="seed", language=language, source=path.read_text())  # type: ignore[attr-defined]
    evaluator = evaluator_for(problem)
    if language == "triton":
        pool = executing(evaluator.problem)
        evaluator = Evaluator(evaluator.problem, "cpu", pool.harness, pool)
    cases = (*evaluator.profile.tests, *(evaluator.profile.held_out[:1] if language == "cpp" else ()))
    evaluation = evaluator.check(kernel, evaluator.compile(kernel), cases)
    assert evaluation.verdict is Verdict.OK, evaluation
    if language == "triton":
        timed = evaluator.time(kernel, evaluation, [evaluator.reference()])
        assert timed.timings == () and "no GPU" in timed.reason


@pytest.mark.gpu
@pytest.mark.parametrize(
    "path", [p for p in SEEDS if p.stem.startswith("triton")], ids=lambda p: f"{p.parts[-3]}-{p.stem}"
)
def test_a_triton_seed_is_right_and_timed_on_a_gpu(path: object) -> None:
    problem = problems.load(path.parents[1], "cuda")  # type: ignore[attr-defined]
    with WorkerPool(SHORT, "cuda", ("triton",)) as shop:
        evaluator = Evaluator(problem, "cpu", shop.harness, shop)
        kernel = Kernel(name="seed", language="triton", source=path.read_text())  # type: ignore[attr-defined]
        evaluation = evaluator.check(kernel, evaluator.compile(kernel))
        evaluation = evaluator.time(kernel, evaluation, [evaluator.reference()])
        assert evaluation.verdict is Verdict.OK and evaluation.timings, evaluation


def test_there_are_seeds_for_both_languages() -> None:
    for name in problems.names():
        problem = problems.find(name)
        assert [f.stem for f in problem.seeds("cpp")] == ["cpp_naive", "cpp_blocked"]
        assert [f.stem for f in problem.seeds("triton")] == ["triton_naive", "triton_tiled"]
