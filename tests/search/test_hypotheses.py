"""States of hypotheses follow from recorded designs and kernels; only measured pairs decide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.population.lineage import Population
from kernel_scientist.records import factors
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Experiment, Verdict
from kernel_scientist.scientist.proposals import own_ideas
from kernel_scientist.search import hypotheses
from kernel_scientist.search.hypotheses import FAILED, HypothesisState
from tests.planned import Interval, design, failed, measured, plan
from tests.trials import trial

SEED = trial("k00001", 1.0)
intervals = st.tuples(st.floats(0.2, 5), st.floats(0, 3)).map(lambda pair: (pair[0], pair[0] + pair[1]))
ranges = st.tuples(st.floats(-90, 300), st.floats(0, 300)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def state(*trials: Trial, of: Experiment | None = None) -> HypothesisState:
    (found,) = hypotheses.of([design(of or plan())], Population((SEED, *trials)))
    return found.state


@given(intervals, ranges)
def test_only_what_the_interval_shows_is_decided(interval: Interval, uplift: Interval) -> None:
    found = hypotheses.decided(interval, uplift)
    if found is HypothesisState.SUPPORTED:
        assert interval[0] > 1
    elif found is HypothesisState.REFUTED:
        assert interval[0] <= 1
        assert factors.is_resolved(interval) or 100 * (interval[1] - 1) < uplift[0] + 1e-6
    else:
        assert found is None and interval[0] <= 1 and not factors.is_resolved(interval)


@given(st.sampled_from(sorted(FAILED)), st.integers(1, 4))
def test_failed_implementations_block_and_never_refute(verdict: Verdict, count: int) -> None:
    trials = [failed(f"k{number:05d}", plan(), verdict) for number in range(2, 2 + count)]
    assert state(*trials) is HypothesisState.BLOCKED
    assert state(*trials, measured("k00009", plan(), (1.1, 1.2))) is HypothesisState.SUPPORTED


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((1.05, 1.3), HypothesisState.SUPPORTED),
        ((0.98, 1.01), HypothesisState.REFUTED),
        ((0.5, 0.7), HypothesisState.REFUTED),
        ((0.6, 1.5), HypothesisState.OPEN),  # too wide to decide anything
        ((0.6, 1.09), HypothesisState.REFUTED),  # as wide, but below the 10 % that were promised
        (factors.UNRESOLVED, HypothesisState.OPEN),
        (None, HypothesisState.OPEN),
    ],
)
def test_a_measured_pair_decides(interval: Interval | None, expected: HypothesisState) -> None:
    assert state(measured("k00002", plan(), interval)) is expected


def test_code_that_is_its_bases_gains_nothing() -> None:
    unchanged = failed("k00002", plan(), Verdict.NO_CHANGE)
    assert state(unchanged) is HypothesisState.REFUTED


def test_what_nobody_tried_is_open_until_its_base_falls_behind() -> None:
    other = plan("h1.2", "other", (0, 500))
    faster = measured("k00002", other, (1.9, 2.1), ratio=2.0)
    assert state() is HypothesisState.OPEN
    found = hypotheses.of([design(plan(), other, plan("h1.3", "bold", (50, 300)))], Population((SEED, faster)))
    assert [one.state.value for one in found] == ["overtaken", "supported", "open"]
    assert [test.kernel for test in found[1].tests] == ["k00002"]


def test_a_kernel_on_another_base_tests_the_same_hypothesis() -> None:
    second = measured("k00002", plan("h1.2", "other"), (1.9, 2.1), ratio=2.0)
    again = measured("k00004", plan(), (1.2, 1.4), base="k00002", ratio=2.6)
    population = Population((SEED, second, failed("k00003", plan()), again))
    first, _ = hypotheses.of([design(plan(), plan("h1.2", "other"))], population)
    assert first.state is HypothesisState.SUPPORTED
    assert [(test.base, test.words) for test in first.tests] == [
        ("k00001", "incorrect"),
        ("k00002", "+30.0 % [+20.0, +40.0] over k00002"),
    ]


def test_a_writers_own_idea_is_a_hypothesis_once_it_is_stated() -> None:
    plans = tuple(p.model_copy(update={"hypothesis": f"h1.{n}"}) for n, p in enumerate(own_ideas(1, 2).plans, 1))
    stated = plan("h1.1", "own idea 1.1: wider")
    (found,) = hypotheses.of([design(*plans)], Population((SEED, measured("k00002", stated, (1.1, 1.2)))))
    assert found.experiment == stated and found.state is HypothesisState.SUPPORTED


def test_kernels_of_older_campaigns_are_hypotheses_of_their_own() -> None:
    old = measured("k00002", plan(""), (0.98, 1.01))
    (found,) = hypotheses.of([], Population((SEED, old)))
    assert (found.name, found.base, found.state) == ("k00002", "k00001", HypothesisState.REFUTED)
    again = failed("k00003", plan("k00002"))
    (found,) = hypotheses.of([], Population((SEED, failed("k00002", plan("")), again)))
    assert [test.kernel for test in found.tests] == ["k00002", "k00003"] and found.experiment.hypothesis == "k00002"


def test_a_machines_failure_says_nothing_of_a_hypothesis() -> None:
    broken = failed("k00002", plan(), Verdict.INFRASTRUCTURE)
    (found,) = hypotheses.of([design(plan())], Population((SEED, broken)))
    assert found.state is HypothesisState.OPEN and found.is_untried and len(found.tests) == 1
    assert state(broken, failed("k00003", plan())) is HypothesisState.BLOCKED


def test_a_plan_that_is_repeated_stays_as_it_was_planned_first() -> None:
    (found,) = hypotheses.of([design(plan()), design(plan(uplift=(1, 2)), generation=2)], Population((SEED,)))
    assert found.generation == 1 and found.experiment.uplift == (10, 20)


def test_what_a_writers_own_idea_states_has_no_number() -> None:
    assert [hypotheses.stated(f"own idea {end}") for end in ("12.1: wider rows", "1.2", "of mine")] == [
        "wider rows",
        "",
        "own idea of mine",
    ]
