"""Predicted against measured uplift, per designer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.population import prediction_accuracy
from tests.report.test_training import POPULATION


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
