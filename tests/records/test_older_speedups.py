"""Intervals of records that were written before they contained the margin."""

from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.records.evaluation import PairedTime, Speedup
from kernel_scientist.records.factors import UNRESOLVED


@given(st.floats(0.5, 2), st.floats(1, 1.5), st.floats(0, 0.3))
def test_are_widened_once_so_that_the_old_rule_and_the_new_one_agree(low: float, width: float, margin: float) -> None:
    ratio = low * width**0.5
    pair = {"time_us": 1.0, "against_us": ratio, "interval": [low, low * width]}
    older = {"against": "reference", "ratio": ratio, "interval": [low, low * width], "margin": margin}
    read = Speedup.model_validate({**older, "cases": {"c": pair}})
    assert read.faster == (low / (1 + margin) > 1) and read.interval == read.cases["c"].interval
    assert read.interval == (low / (1 + margin), low * width * (1 + margin))
    assert Speedup.model_validate_json(read.model_dump_json()) == read


def test_of_too_few_blocks_stay_unknown() -> None:
    few = PairedTime(time_us=1.0, against_us=2.0)
    read = Speedup(against="reference", ratio=2.0, interval=UNRESOLVED, margin=0.1, cases={"c": few})
    assert not read.known and read.interval == UNRESOLVED and read.cases["c"].interval is None
