"""What is worth trying next: by probability, expected gain and effort, each mechanism once, failures again."""

from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.population.lineage import Population
from kernel_scientist.records.kernel import Experiment, Verdict
from kernel_scientist.search import hypotheses, worth
from kernel_scientist.search.hypotheses import Hypothesis
from tests.planned import design, failed, measured, plan
from tests.trials import trial

SEED = trial("k00001", 1.0)
ranges = st.tuples(st.floats(-90, 300), st.floats(0, 300)).map(lambda pair: (pair[0], pair[0] + pair[1]))

plans = st.lists(
    st.builds(
        lambda mechanism, uplift, probability, effort: plan(
            uplift=uplift, mechanism=mechanism, probability=probability, effort=effort
        ),
        st.sampled_from(["fewer bytes", "Fewer  bytes", "latency", "launches"]),
        ranges,
        st.none() | st.floats(0, 1),
        st.integers(1, 3),
    ),
    max_size=12,
)


def known(*given: Experiment, population: Population | None = None) -> list[Hypothesis]:
    return hypotheses.of([design(*given)], population or Population((SEED,)))


def named(given: list[Experiment]) -> list[Experiment]:
    return [p.model_copy(update={"hypothesis": f"h1.{n}", "title": f"plan {n}"}) for n, p in enumerate(given, 1)]


@given(plans, st.floats(0, 30))
def test_each_mechanism_comes_once_before_any_comes_twice_and_the_best_is_first(
    given: list[Experiment], least: float
) -> None:
    found = worth.candidates(known(*named(given)), Population((SEED,)), least=least)
    first = found[: worth.mechanisms(found)]
    assert len({one.hypothesis.mechanism for one in first}) == len(first)
    for part in (first, found[len(first) :]):
        assert [one.worth for one in part] == sorted((one.worth for one in part), reverse=True)
    assert all(worth.expected_gain(one.hypothesis.experiment.uplift) > least for one in found)
    assert not found or found[0].worth == max(one.worth for one in found)


@given(ranges)
def test_the_expected_gain_lies_between_nothing_and_the_best_that_is_promised(uplift: tuple[float, float]) -> None:
    gain = worth.expected_gain(uplift)
    assert 0 <= gain <= max(0.0, uplift[1]) + 1e-9
    assert gain >= max(0.0, sum(uplift) / 2) - 1e-9  # a loss counts as no gain


@given(st.floats(0.01, 1), st.integers(1, 3), st.integers(0, 3))
def test_worth_falls_with_doubt_effort_and_failures(probability: float, effort: int, failures: int) -> None:
    made = [failed(f"k{n:05d}", plan()) for n in range(2, 2 + failures)]
    (sure,) = known(plan(probability=1))
    (one,) = known(plan(probability=probability, effort=effort), population=Population((SEED, *made)))
    expected = worth.worth(sure) * probability / effort / 2**failures
    assert abs(worth.worth(one) - expected) < 1e-9


def test_a_mechanism_that_was_refuted_is_trusted_less() -> None:
    given = named([plan(mechanism="bytes"), plan(mechanism="bytes"), plan(mechanism="latency")])
    population = Population((SEED, measured("k00002", given[0], (0.98, 1.01))))
    found = worth.candidates(known(*given, population=population), population)
    assert [one.hypothesis.name for one in found] == ["h1.3", "h1.2"]
    assert found[1].worth == found[0].worth / 2
    supported = Population((SEED, measured("k00002", given[0], (1.1, 1.2), ratio=1.1)))
    assert {one.worth for one in worth.candidates(known(*given, population=supported), supported)} == {3.75 * 2}


def test_a_blocked_one_is_tried_on_the_incumbent_then_again_and_at_last_given_up() -> None:
    given = named([plan(uplift=(100, 300))])
    start, faster = (SEED, failed("k00002", given[0])), trial("k00003", 1.5, {"k00001": (1.4, 1.6)})
    (again,) = worth.candidates(known(*given, population=Population(start)), Population(start))
    assert again.base == "k00001"  # it is the incumbent, so another implementation is all that can differ
    moved = Population((*start, faster))
    (elsewhere,) = worth.candidates(known(*given, population=moved), moved)
    assert elsewhere.base == "k00003"
    assert not worth.candidates(known(*given, population=moved), moved, repeats=False)
    assert not worth.candidates(known(*given, population=moved), moved, busy={"h1.1"})
    often = Population((*start, faster, failed("k00004", given[0], base="k00003"), failed("k00005", given[0])))
    assert not worth.candidates(known(*given, population=often), often)


def test_what_was_measured_is_never_tried_again() -> None:
    given = named([plan(), plan(), plan()])
    made = [
        measured("k00002", given[0], (1.1, 1.2), ratio=1.1),
        measured("k00003", given[1], (0.5, 0.6), ratio=0.5),
        measured("k00004", given[2], (0.5, 2.0)),
    ]
    population = Population((SEED, *made))
    assert not worth.candidates(known(*given, population=population), population)


def test_what_could_not_be_measured_is_no_candidate_however_likely_or_cheap() -> None:
    given = named([plan(uplift=(1, 2), mechanism="a"), plan(uplift=(4, 4), mechanism="b", probability=0.1, effort=3)])
    (found,) = worth.candidates(known(*given), Population((SEED,)), least=2)
    assert found.hypothesis.name == "h1.2"


def test_what_a_machine_ended_is_tried_as_if_for_the_first_time_but_not_forever() -> None:
    broken = [failed(f"k{n:05d}", plan(), Verdict.INFRASTRUCTURE) for n in range(2, 5)]
    once, often = Population((SEED, broken[0])), Population((SEED, *broken))
    (again,) = worth.candidates(known(plan(), population=once), once, repeats=False)
    assert again.worth == worth.worth(known(plan())[0])
    assert not worth.candidates(known(plan(), population=often), often)


def test_a_third_attempt_is_on_the_incumbent_as_well() -> None:
    trials = (SEED, failed("k00002", plan(uplift=(100, 300))), trial("k00003", 1.5, {"k00001": (1.4, 1.6)}))
    population = Population((*trials, failed("k00004", plan(uplift=(100, 300)), base="k00003")))
    (found,) = worth.candidates(known(plan(uplift=(100, 300)), population=population), population)
    assert found.base == "k00003"
