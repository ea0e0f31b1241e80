"""From timed rows to results: the clock that counts, and ratios that are ratios of the times shown."""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist import problems
from kernel_scientist.evaluation.timing import impossible
from kernel_scientist.evaluation.timing.conditions import Load
from kernel_scientist.evaluation.timing.estimate import Estimator, Samples
from kernel_scientist.evaluation.timing.plan import TimingPlan
from kernel_scientist.evaluation.timing.schedule import hopeless
from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.evaluation import Evaluation, PairedTime, Speedup
from kernel_scientist.records.kernel import REFERENCE, Case, Verdict
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.client import Row
from kernel_scientist.workers.native import Reading
from tests.conftest import ROOT

OVERHEAD_NS = 4_000
CASES = tuple(Case(sizes={"size": n}, seed=1) for n in (1024, 4096))
IDENTITY = problems.load(ROOT / "problems/identity")
PLAN = TimingPlan(CASES, "k", REFERENCE, 4, 1, 1, 0.95)
SLOW = Machine("slow", 1e-6, {"fp16": 1.0})


def row(ns: int, claimed: int | None = None, event: int = 0, calls: int = 1) -> Row:
    """Return a row of calls of so many ns each, of which the worker claims another time."""
    claim = (ns if claimed is None else claimed) * calls
    return Row(calls, ns * calls + OVERHEAD_NS, Reading(claim, claim, 0, event * calls))


def samples(times: dict[str, Row], blocks: int = 4) -> Samples:
    """Return blocks in which each source's row is always the same, on all cases."""
    found = Samples()
    for name, one in times.items():
        for case in CASES:
            for block in range(blocks):
                found.add(name, case.name, 0, block, one)
    return found


def _counted(_: Problem, __: Case) -> tuple[float, float]:
    return 1e6, 1e6


def result(found: Samples, machine: Machine | None = None, counted: bool = False) -> Evaluation:
    problem = replace(IDENTITY, work_expressions={}, count_work=_counted) if counted else IDENTITY
    return Estimator(problem, machine, 0.95).result(Evaluation(verdict=Verdict.OK), PLAN, found, [REFERENCE])


@given(st.integers(1, 99))
def test_a_dropped_kernel_is_stated_as_slower_by_the_interval_that_dropped_it(percent: int) -> None:
    found = samples({"k": row(100_000), "k1": row(1000 * percent), REFERENCE: row(300_000)}, blocks=2)
    plan = replace(PLAN, baseline="k1", drop_after=2, drop_below=0.7)
    for case in CASES:
        found.add("k", case.name, 0, 0, row(101_000))
        for name in ("k1", REFERENCE):
            found.add(name, case.name, 0, 0, row(1000 * percent))
    found.dropped_after = 2 if hopeless(plan, found, 2) else 0
    shown = Estimator(IDENTITY, None, 0.95).result(Evaluation(verdict=Verdict.OK), plan, found, ["k1", REFERENCE])
    tested, other = shown.speedups
    assert (tested.interval[1] < 0.7) == bool(found.dropped_after) == bool(tested.dropped)
    assert not found.dropped_after or (tested.resolved and re.match(r"0\.\d+x \[", str(tested)))
    assert not other.resolved or not found.dropped_after, "nothing decided about the reference"


@pytest.mark.parametrize("calls", [1, 7])
def test_a_time_is_the_evaluators_clock_per_call_less_its_overhead(calls: int) -> None:
    found = samples({"k": row(3_000, calls=calls), REFERENCE: row(9_000, calls=calls)})
    assert found.times_us("k", CASES[0].name) == pytest.approx([3.0] * 4)
    assert found.times_us(REFERENCE, CASES[0].name) == pytest.approx([9.0] * 4)


@given(st.integers(2_000, 5_000_000), st.integers(0, 10**7))
def test_a_worker_gains_nothing_by_claiming_less(true: int, hidden: int) -> None:
    found = samples({"k": row(true, claimed=max(true - hidden, 1)), REFERENCE: row(true)})
    assert result(found).speedups[0].ratio == pytest.approx(1)


@given(st.integers(1_000, 10**8), st.integers(0, 10**7), st.integers(0, 10**7))
def test_no_time_is_less_than_a_worker_says_that_it_took(took: int, own: int, usual: int) -> None:
    def one(ns: int, overhead: int) -> Row:
        return Row(1, ns + overhead, Reading(ns, ns, 0, 0))

    found = samples({"k": one(took, own), REFERENCE: one(10_000_000, usual)})
    times = found.times_us("k", CASES[0].name)
    assert took / 1000 - 1e-6 <= times[0] <= (took + own) / 1000 + 1e-6, "a sleep of 10 ms read 8.9 ms beside load 5"


@given(st.lists(st.lists(st.integers(2_000, 10**7), min_size=4, max_size=4), min_size=4, max_size=4))
def test_a_ratio_is_the_quotient_of_the_times_shown(times: list[list[int]]) -> None:
    found = Samples()
    for (name, case), values in zip([(n, c) for n in ("k", REFERENCE) for c in CASES], times, strict=True):
        for block, ns in enumerate(values):
            found.add(name, case.name, 0, block, row(ns))
    evaluation = result(found)
    (speedup,) = evaluation.speedups
    shown = {timing.case: timing.time_us for timing in evaluation.timings}
    quotients = [math.log(pair.against_us / shown[case]) for case, pair in speedup.cases.items()]
    assert math.log(speedup.ratio) == pytest.approx(sum(quotients) / len(quotients), abs=1e-9)


def test_one_set_of_processes_finds_no_kernel_faster_by_the_first_stages_margin() -> None:
    found = samples({"k": row(98_400), REFERENCE: row(100_000)})
    plan = replace(PLAN, stages=3, margins=(0.005, 0.01, 0.02))
    after_one = Estimator(IDENTITY, None, 0.95).speedup(found, plan, REFERENCE)
    assert after_one.stages == 1 and after_one.margin == 0.02 and not after_one.faster
    planned = replace(plan, stages=1, margins=(0.005,))
    assert Estimator(IDENTITY, None, 0.95).speedup(found, planned, REFERENCE).faster, "more were not asked for"
    for case in CASES:
        for name, ns in (("k", 98_400), (REFERENCE, 100_000)):
            for block in range(4):
                found.add(name, case.name, 1, block, row(ns))
    assert Estimator(IDENTITY, None, 0.95).speedup(found, plan, REFERENCE).faster


def test_a_record_refuses_a_ratio_that_its_times_do_not_give() -> None:
    with pytest.raises(ValueError, match="the times beside it give 2"):
        Speedup(against="a", ratio=1.5, interval=(1.4, 1.6), cases={"c": PairedTime(time_us=1, against_us=2)})


def test_a_gpu_is_timed_by_its_events() -> None:
    found = samples({"k": row(55_000, event=5_000), REFERENCE: row(60_000, event=10_000)})
    assert result(found).speedups[0].ratio == pytest.approx(2)


def test_work_on_another_stream_than_the_events_is_added() -> None:
    found = Samples()
    for block in range(8):
        for name, event, host in (("k", 5, 33), ("honest", 50, 58 + block % 2), (REFERENCE, 100, 108 + block % 2)):
            found.add(name, "c", 0, block, row(host * 1000, event=event * 1000))
    assert found.times_us(REFERENCE, "c") == pytest.approx([100] * 8)
    assert found.times_us("honest", "c") == pytest.approx([50] * 8)
    assert found.times_us("k", "c") == pytest.approx([5 + 28 - 8.5] * 8)  # 8.5 is usual


@pytest.mark.parametrize("machine", [SLOW, replace(SLOW, certain=False)])
def test_a_time_below_the_floor_is_impossible_where_the_bound_is_certain(machine: Machine) -> None:
    estimator, found = Estimator(IDENTITY, machine, 0.95), samples({"k": row(10_000), REFERENCE: row(100_000)})
    assert bool(estimator.impossible(PLAN, found)) == machine.certain
    assert any("references-work" in label for label in result(found, machine).labels)


def test_who_is_below_the_floor_once_is_accused_of_nothing() -> None:
    found = samples({"k": row(10_000), REFERENCE: row(100_000)})
    below, before = Estimator(IDENTITY, SLOW, 0.95).impossible(PLAN, found), Load.now()
    for runs in ([below], [below, ()], [(), below]):
        impossible.require_possible(runs, before)
    with pytest.raises(KernelFailure, match=r"in 2 runs .*10 and 10 us, below the floor of .* us; load \d") as failure:
        impossible.require_possible([below, below], before)
    assert len(failure.value.evidence) == len(CASES)


def test_a_time_below_that_of_work_that_was_only_counted_is_a_label() -> None:
    found = result(samples({"k": row(10_000), REFERENCE: row(100_000)}), SLOW, True)
    assert [label for label in found.labels if "references-work" in label] == [
        f"measured:less-than-the-references-work:{case.name}" for case in CASES
    ]


def test_runs_are_joined_process_by_process() -> None:
    one, two = samples({"k": row(1_000), REFERENCE: row(1_000)}), samples({"k": row(2_000), REFERENCE: row(1_000)})
    joined = Samples.joined([one, two])
    assert joined.stages == 2 and joined.blocks_us("k", CASES[0].name) == [[1.0] * 4, [2.0] * 4]
