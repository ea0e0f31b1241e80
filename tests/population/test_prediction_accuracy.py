"""Predicted against measured uplift, per designer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.population import prediction_accuracy
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.kernel import Author
from tests.report.test_training import POPULATION, designed
from tests.trials import trial


def test_predictions_are_compared_with_measurements_per_designer() -> None:
    found = prediction_accuracy.by_designer(prediction_accuracy.predictions(POPULATION))
    first, second = found
    assert (first.designer, second.designer, first.experiments) == ("m", "n", 3), "tuned kernels have no prediction"
    assert first.failed == pytest.approx(1 / 3, abs=1e-3) and first.within == 0.5
    assert second.measured == "+20.0 % [+10.0, +30.0]" and second.bias == pytest.approx(-15)
    assert (first.pairs, second.pairs) == (2, 1)


@given(st.lists(st.integers(-50, 200), min_size=4, max_size=20, unique=True))
def test_rank_correlation_is_one_for_what_rises_together(values: list[int]) -> None:
    first = [float(v) for v in values]
    assert prediction_accuracy.rank_correlation(first, [v**3 for v in first]) == 1
    assert prediction_accuracy.rank_correlation(first, [-v for v in first]) == -1


@pytest.mark.parametrize(
    ("roles", "expected"), [(("writer",), "writer"), (("designer", "writer"), "designer"), ((), "playbook")]
)
def test_a_prediction_is_of_who_had_the_idea(roles: tuple[str, ...], expected: str) -> None:
    made = designed(trial("k00002", 1.1, {"k00001": (1.05, 1.15)}, base="k00001"), 5, 20)
    kernel = made.kernel.model_copy(
        update={"authors": {role: Author(model=role) for role in roles}, "transcript": "said"}
    )
    population = Population((trial("k00001", 1.0), made.model_copy(update={"kernel": kernel})))
    assert prediction_accuracy.predictions(population)[0].designer == expected
    assert population.get("k00002").kernel == kernel.model_copy(update={"transcript": ""})
