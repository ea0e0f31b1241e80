"""Predicted against measured uplift, per designer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.population import prediction_accuracy
from tests.report.test_training import POPULATION


def test_predictions_are_compared_with_measurements_per_designer() -> None:
    rows = {row["designer"]: row for row in prediction_accuracy.table(prediction_accuracy.predictions(POPULATION))}
    assert set(rows) == {"m", "n"} and rows["m"]["experiments"] == 3  # tuned kernels have no predicted uplift
    assert rows["m"]["failed"] == pytest.approx(1 / 3, abs=1e-3) and rows["m"]["within"] == 0.5
    assert rows["n"]["measured"] == "+20.0 % [+10.0, +30.0]" and rows["n"]["bias"] == pytest.approx(-15)
    assert (rows["m"]["pairs"], rows["n"]["pairs"]) == (2, 1)


@given(st.lists(st.integers(-50, 200), min_size=4, max_size=20, unique=True))
def test_rank_correlation_is_one_for_what_rises_together(values: list[int]) -> None:
    first = [float(v) for v in values]
    assert prediction_accuracy.rank_correlation(first, [v**3 for v in first]) == 1
    assert prediction_accuracy.rank_correlation(first, [-v for v in first]) == -1
