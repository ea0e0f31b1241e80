"""The competition's entries, predicted by kernels that take their published steps."""

import pytest

from benchmarks import contest
from kernel_scientist.gpu.model import constants


@pytest.mark.slow
def test_both_entries_are_predicted_within_the_goal_on_every_published_shape() -> None:
    rows = contest.rows(constants.of("mi300x"))
    assert [len(of_entry) for of_entry in rows.values()] == [18, 18]
    factors = {name: [row.factor for row in each if row.factor] for name, each in rows.items()}
    assert [len(each) for each in factors.values()] == [6, 18]
    assert max(max(f, 1 / f) for each in factors.values() for f in each) <= contest.MOST_FACTOR == 1.3
