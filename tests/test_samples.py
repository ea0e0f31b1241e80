"""What a ratio may rest on: what was timed, what was hidden, and what passes beside a call."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist import problems
from kernel_scientist.evaluate.timing.estimate import Reckoner
from kernel_scientist.evaluate.timing.samples import By, Samples
from kernel_scientist.evaluate.timing.schedule import Plan
from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.records.evaluation import Evaluation, Speedup
from kernel_scientist.records.kernel import REFERENCE, Case, Verdict
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.call import Call
from kernel_scientist.workers.native import Reading
from tests.conftest import ROOT

BEFORE, OUTSIDE, AFTER = 60_000, 40_000, 35_000
"""What passes beside every call, ns."""
BESIDE = BEFORE + OUTSIDE


def call(claimed: int, took: int | None = None, event: int = 0) -> Call:
    """Return a call that says it took so many ns, and by the verifier's clock took another time."""
    wall = (claimed if took is None else took) + OUTSIDE
    return Call((Reading(claimed, claimed, claimed, 0, event),), wall, BEFORE, AFTER, wall, wall)


def samples(calls: dict[str, Call], looks: int = 1) -> Samples:
    """Return four blocks a look in which each contestant's call is always the same."""
    found = Samples()
    for name, one in calls.items():
        for look in range(looks):
            for block in range(4):
                found.add(name, "case", look, block, one)
    found.charge("k")
    return found


def gain(found: Samples, name: str = "k") -> float:
    """Return how many times faster than the reference a contestant counts as."""
    return found.blocks_of(REFERENCE)[0][0] / found.blocks_of(name)[0][0]


def test_a_call_that_is_long_beside_what_passes_around_it_counts_as_what_it_takes() -> None:
    found = samples({"k": call(1_000_000), REFERENCE: call(1_030_000)})
    assert gain(found) == pytest.approx(1.03, rel=5e-4)
    assert gain(samples({"k": call(1_000_000), REFERENCE: call(10_000_000)})) == pytest.approx(10, rel=1e-2)


def test_a_call_that_is_short_beside_what_passes_around_it_gains_nothing_by_being_told_shorter() -> None:
    assert gain(samples({"k": call(100), REFERENCE: call(5_000)})) < 1.01


@given(true=st.integers(1_000, 5_000_000), hidden=st.integers(0, BESIDE))
def test_whatever_a_liar_hides_within_what_is_usual_gains_less_than_half(true: int, hidden: int) -> None:
    """Its work is done in time that passes beside every call, so that no clock shows more than usual."""
    found = samples({"k": call(max(true - hidden, 1)), REFERENCE: call(true)})
    assert gain(found) <= 2**0.5 + 1e-9


@given(st.lists(st.integers(1, 10**8), min_size=2, max_size=2))
def test_a_shorter_call_never_counts_as_longer(times: list[int]) -> None:
    shorter, longer = sorted(times)
    assert gain(samples({"k": call(shorter), REFERENCE: call(longer)})) >= 1


def test_figures_per_case_are_what_was_measured() -> None:
    found = samples({"k": call(3_000), REFERENCE: call(9_000)})
    assert set(found.of("k", "case")) == {3.0}
    assert found.blocks_of("k", by=By.CALL)[0] == pytest.approx([3.0] * 4)


def test_what_was_hidden_is_charged_before_it_is_counted() -> None:
    found = samples({"k": call(10_000, took=1_000_000), REFERENCE: call(1_000_000)})
    assert gain(found) == pytest.approx(1, rel=1e-2)


def test_calls_on_a_gpu_count_as_their_events_say() -> None:
    found = samples({"k": call(55_000, event=5_000), REFERENCE: call(60_000, event=10_000)})
    assert gain(found) == pytest.approx(2) and found.seen("k", REFERENCE, 0.95) is None


def test_runs_that_are_put_together_keep_the_larger_of_what_passed_beside() -> None:
    quiet, busy = samples({"k": call(1_000), REFERENCE: call(1_000)}), Samples()
    busy.beside_ns["case"] = 300_000
    assert Samples.joined([quiet, busy]).beside_ns == {"case": 300_000}


@given(true=st.integers(1_000, 5_000_000), hidden=st.integers(0, 10**7))
def test_a_lie_about_a_call_is_no_gain_by_what_the_verifier_saw(true: int, hidden: int) -> None:
    honest, liar = call(true), call(max(true - hidden, 1), took=true)
    assert samples({"k": liar, REFERENCE: honest}).seen("k", REFERENCE, 0.95) == (1.0, 1.0)
    assert Speedup(against=REFERENCE, ratio=1.2, interval=(1.1, 1.3), seen=(1.1, 1.3)).faster
    assert not Speedup(against=REFERENCE, ratio=1.2, interval=(1.1, 1.3), seen=(1.0, 1.0)).faster


@pytest.mark.parametrize("where", ["late_ns", "idle_ns", "ready_ns", "before_ns", "after_ns"])
def test_whatever_time_was_taken_around_a_call_is_seen(where: str) -> None:
    found = samples({"k": replace(call(1_000), **{where: 90_000}), REFERENCE: call(1_000)})
    seen = found.seen("k", REFERENCE, 0.95)
    assert seen is not None and seen[1] < 1


def test_who_reaches_for_the_harness_must_gain_more_than_can_be_hidden() -> None:
    found = samples({"k": call(100_000 - 70_000), REFERENCE: call(100_000)})
    owing = found.owing("k")
    assert gain(found) > 1.3 > 1 > gain(owing)
    assert set(owing.of("k", "case")) == {(30_000 + BESIDE) / 1000} and owing.of(REFERENCE, "case") == [100.0] * 4
    seen = owing.seen("k", REFERENCE, 0.95)
    assert seen is not None and seen[1] < 1
    assert gain(samples({"k": call(1_000_000), REFERENCE: call(3_000_000)}).owing("k")) > 2.7
    assert owing.owing("k") == owing


@pytest.mark.parametrize(
    ("label", "owes"),
    [
        ("high:harness-patch", True),
        ("high:obfuscation", True),
        ("medium:harness-patch", False),
        ("low:timer-patch", False),
    ],
)
def test_a_label_moves_a_time_and_no_verdict(label: str, owes: bool) -> None:
    problem, case = problems.load(ROOT / "problems/identity"), Case(sizes={"size": 4096}, seed=1)
    plan = Plan((case,), "k", None, 4, 1, 1, 0.95)
    found = Samples()
    for name in ("k", REFERENCE):
        for block in range(4):
            found.add(name, case.name, 0, block, call(100_000))
    found.charge("k")
    checked = Evaluation(verdict=Verdict.OK, labels=(label,))
    told = Reckoner(problem, None, 0.95).result(checked, plan, found, [REFERENCE])
    assert told.verdict is Verdict.OK and told.timings[0].time_us == 100 + BESIDE / 1000 * owes
    assert any("charged to it: its file is labelled" in words for words in told.evidence) is owes


def test_a_time_that_cannot_be_is_refused_whatever_is_charged() -> None:
    problem, case = problems.load(ROOT / "problems/identity"), Case(sizes={"size": 4096}, seed=1)
    found = samples({"k": call(1), REFERENCE: call(100_000)})
    found.calls = {(name, case.name): table for (name, _), table in found.calls.items()}
    checked = Evaluation(verdict=Verdict.OK, labels=("high:harness-patch",))
    with pytest.raises(KernelFailure, match="below the roofline floor"):
        Reckoner(problem, MI300X, 0.95).result(checked, Plan((case,), "k", None, 4, 1, 1, 0.95), found, [REFERENCE])
