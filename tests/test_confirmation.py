"""What it takes to be confirmed, and what is said of who is not."""

import pytest

from kernel_scientist.evaluate.confirmation import decide
from kernel_scientist.records.evaluation import UNRESOLVED, Evaluation, Speedup, Timing
from kernel_scientist.records.kernel import REFERENCE, Verdict

TIMING = Timing(case="c", time_us=1.0, interval_us=(1.0, 1.0))


def speedup(interval: tuple[float, float], seen: tuple[float, float] | None = None) -> Speedup:
    return Speedup(against=REFERENCE, ratio=1.2, interval=interval, seen=seen, margin=0.02)


GOOD, SEEN = (1.1, 1.3), (1.05, 1.2)


@pytest.mark.parametrize(
    ("public", "hidden", "words"),
    [
        (speedup(GOOD, SEEN), speedup(GOOD, SEEN), ""),
        (speedup(GOOD), speedup(GOOD), ""),
        (speedup(GOOD, SEEN), speedup((1.01, 1.3), SEEN), ""),
        (speedup((1.01, 1.3), SEEN), speedup(GOOD, SEEN), "on the public cases: 1.200x [1.010, 1.300]"),
        (speedup(GOOD, (0.97, 1.2)), speedup(GOOD, SEEN), "public cases: 1.200x [1.100, 1.300]; [0.970, 1.200] by all"),
        (speedup(GOOD, SEEN), speedup((0.9, 1.3), SEEN), "on the held-out cases: 1.200x [0.900, 1.300]"),
        (
            speedup(GOOD, SEEN),
            speedup(GOOD, (0.9, 0.95)),
            "held-out cases: 1.200x [1.100, 1.300]; [0.900, 0.950] by",
        ),
        (speedup(UNRESOLVED), speedup(GOOD), "too few blocks to say"),
    ],
)
def test_a_kernel_is_confirmed_where_everything_shows_it(public: Speedup, hidden: Speedup, words: str) -> None:
    evaluation = Evaluation(verdict=Verdict.OK, timings=(TIMING,), speedups=(public,))
    confirmed, why = decide(evaluation, [hidden], REFERENCE)
    assert confirmed is (words == "") and words in why


def test_who_is_wrong_is_not_confirmed_and_who_has_no_rival_need_only_be_right() -> None:
    wrong = Evaluation(verdict=Verdict.INCORRECT, reason="it is wrong")
    assert decide(wrong, [], REFERENCE) == (False, "it is wrong")
    assert decide(Evaluation(verdict=Verdict.OK), [], None)[0]
    assert not decide(Evaluation(verdict=Verdict.OK), [], REFERENCE)[0]
