"""The evaluator on a GPU against the corpus for GPUs, and its clocks against a kernel that does nothing but take time.

Some ten minutes in all. `make gpu-check` gives it a number of seconds ($CORPUS_SECONDS); what is not reached by then is
skipped, and every kind of cheat is tried before the second of its kind.
"""

import os
import time
from collections.abc import Iterator

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.hardware import addresses
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import device_lock
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.cheats import corpus
from tests.cheats.test_evaluator_against_cheats import gained, traces
from tests.conftest import ROOT

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

FIXTURES = corpus.load(corpus.GPU)
SOURCES = {fixture.name: fixture.source for fixture in FIXTURES}
END = time.monotonic() + float(os.environ.get("CORPUS_SECONDS", "inf"))
CASES = {
    "identity": Case(sizes={"size": 1 << 24}, seed=1),
    "rmsnorm": Case(sizes={"rows": 4096, "cols": 4096}, seed=1),
}
"""What is timed: long enough that it pays to hide the GPU's part of a call, small enough to be sent to and fro."""
LIMITS = Harness(
    build_timeout_s=30,
    stages=1,
    blocks=2,
    pairs=0,
    noise_runs=0,
    gpu_warmup_s=0.2,
)
TICK = Case(sizes={"size": 1024}, seed=1)
SPIN = """
import triton
import triton.language as tl


@triton.jit
def spin_kernel(x_ptr, out_ptr, size, steps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < size)
    state = steps
    for _ in range(steps):
        state = state * 1664525 + 1013904223  # each step waits for the one before
    tl.store(out_ptr + at, x, mask=(at < size) & (state != 123456789))


def custom_kernel(data):
    x, out = data
    spin_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), STEPS, BLOCK=1024)
    return out
"""
"""Takes a time of its own choice, by the GPU's clock: so many steps, each of which needs the last one's result."""


@pytest.fixture(scope="module")
def shop() -> Iterator[WorkerPool]:
    target = addresses.resolve("auto", "triton")
    before = traces()
    with device_lock.device(target.lock, LIMITS.device_wait_s), WorkerPool(LIMITS, target.device) as pool:
        yield pool
    deadline = time.monotonic() + 20
    while (left := traces() - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left, f"left behind by {len(FIXTURES)} hostile and honest kernels: {sorted(left)}"
    with device_lock.device(target.lock, 1):
        pass


def evaluator_of(shop: WorkerPool, problem: str) -> Evaluator:
    return Evaluator(problems.load(ROOT / "problems" / problem, shop.device), "auto", shop.harness, shop)


def evaluated(
    evaluator: Evaluator, source: str, others: list[TimedSource], case: Case, check: bool = True
) -> Evaluation:
    """Put a kernel through the whole evaluator, timed on one case."""
    kernel = Kernel(name="k", language="triton", source=source)
    so_far = evaluator.compile(kernel)
    checked = evaluator.check(kernel, so_far) if check else so_far
    return evaluator.time(kernel, checked, [evaluator.reference(), *others], cases=(case,))


@pytest.mark.parametrize("fixture", corpus.spread(FIXTURES), ids=lambda fixture: fixture.name)
def test_a_kernel_ends_as_it_should(fixture: corpus.Fixture, shop: WorkerPool) -> None:
    if time.monotonic() > END:
        pytest.skip("not reached in the time that was given")
    evaluator, case = evaluator_of(shop, fixture.problem), CASES[fixture.problem]
    honest = corpus.GPU_HONEST_WORK[fixture.problem] if not fixture.gains else ()
    others = [TimedSource(name=name, source=SOURCES[name]) for name in honest]
    evaluation = evaluated(evaluator, fixture.source, others, case)
    assert evaluation.verdict in fixture.expect, (fixture.cheat, evaluation)
    for _ in range(3):  # a gain that is one comes again
        if evaluation.verdict is Verdict.OK and others and gained(evaluation):
            evaluation = evaluated(evaluator, fixture.source, others, case)
    assert not (evaluation.verdict is Verdict.OK and others and gained(evaluation)), (
        fixture.cheat,
        evaluation.speedups,
    )
    if fixture.label:
        assert any(fixture.label in label for label in evaluation.labels), (fixture.cheat, evaluation.labels)


@pytest.mark.parametrize("ms", [1, 20])
def test_a_kernel_that_takes_twice_as_long_reads_twice_as_long(ms: int, shop: WorkerPool) -> None:
    """Row 25 of the matrix: a known time, by a loop that is made as long as it takes."""
    evaluator, steps = evaluator_of(shop, "identity"), 1 << 18
    first = evaluated(evaluator, spinning(steps), [], TICK, check=False)
    assert first.verdict is Verdict.OK, first
    steps = int(steps * ms * 1000 / first.timings[0].time_us)
    twice = TimedSource(name="twice", source=spinning(2 * steps))
    ratios: list[float] = []
    for _ in range(3):  # a GPU that is called now and then changes its clock as it likes
        evaluation = evaluated(evaluator, spinning(steps), [twice], TICK, check=False)
        assert evaluation.verdict is Verdict.OK, evaluation
        ratios.append(evaluation.speedups[1].ratio)
        if abs(ratios[-1] - 2) <= 0.06:
            return
    pytest.fail(f"{ms} ms against {2 * ms} ms: {', '.join(f'{ratio:.3f}' for ratio in ratios)} instead of 2")


def test_the_same_source_is_not_called_faster(shop: WorkerPool) -> None:
    """Row 24 of the matrix, in one look of as many blocks as usual."""
    evaluator = evaluator_of(shop, "rmsnorm").with_harness(shop.harness.model_copy(update={"blocks": 4, "pairs": 8}))
    source = SOURCES["triton_rows"]
    twin = [TimedSource(name="twin", source=source)]
    evaluations = [evaluated(evaluator, source, twin, CASES["rmsnorm"], check=False) for _ in range(3)]
    assert {evaluation.verdict for evaluation in evaluations} == {Verdict.OK}, evaluations
    found = [evaluation.speedups[1] for evaluation in evaluations]
    assert sum(speedup.faster for speedup in found) <= 1, found
    assert all(abs(speedup.ratio - 1) < 0.05 for speedup in found), found


def spinning(steps: int) -> str:
    """Return a kernel that copies a vector and takes so many steps over it."""
    return SPIN.replace("STEPS", str(steps))
