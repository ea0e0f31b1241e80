"""The final: who takes part, who wins."""

import pytest

from kernel_scientist.population.final import Final, finalists
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Evaluation, PairedTime, Speedup, Timing
from kernel_scientist.records.kernel import REFERENCE, Verdict
from tests.trials import trial

POPULATION = Population(
    (
        trial("k00001", 1.0),
        trial("k00004", 1.94, {"k00001": (1.8, 2.0)}),
        trial("k00012", 2.23, {"k00004": (0.95, 1.2)}),
        trial("k00013", 2.1, {"k00004": (0.9, 1.2)}),
        trial("k00014", 2.05, {"k00004": (0.9, 1.2)}),
        trial("k00015", 2.0, {"k00004": (0.9, 1.2)}),
        trial("k00016", None, base="k00004"),
    )
)


def evaluation(times_us: dict[str, dict[str, float]], candidate: str) -> Evaluation:
    """What `Evaluator.time` returns for a candidate, given the times of all sources."""
    own_us = times_us[candidate]
    speedups = []
    for name, other_us in times_us.items():
        pairs = {case: PairedTime(time_us=us, against_us=other_us[case]) for case, us in own_us.items()}
        ratio = Speedup(against=name, ratio=1.0, interval=(1, 1)).model_copy(update={"cases": pairs})
        ratio = Speedup(against=name, ratio=ratio.against_us / ratio.time_us, interval=(0.5, 2), cases=pairs)
        speedups += [ratio] if name != candidate else []
    timings = tuple(Timing(case=case, time_us=us, interval_us=(us, us)) for case, us in own_us.items())
    return Evaluation(verdict=Verdict.OK, timings=timings, speedups=tuple(speedups))


def test_finalists_are_the_incumbent_and_those_that_no_test_tells_from_it() -> None:
    assert [t.kernel.name for t in finalists(POPULATION, 4)] == ["k00004", "k00012", "k00013", "k00014"]
    assert [t.kernel.name for t in finalists(POPULATION, 1)] == ["k00004"]
    assert [t.kernel.name for t in finalists(Population(tuple(POPULATION)[:2]), 4)] == ["k00004"]
    assert finalists(Population(), 4) == []


def test_a_lucky_ratio_to_the_reference_makes_no_finalist() -> None:
    """Under load one run said 5 times the reference, but beside the incumbent the kernel was slower."""
    slower = trial("k00016", 5.0, {"k00004": (0.7, 0.9)})
    dropped = trial("k00017", 6.0, {"k00004": (0.1, 0.3)})
    population = Population((*tuple(POPULATION)[:2], slower, dropped))
    assert [t.kernel.name for t in finalists(population, 4)] == ["k00004"]
    unlucky = trial("k00018", 0.3, {"k00004": (0.99, 1.2)})
    population.add(unlucky)
    assert [t.kernel.name for t in finalists(population, 4)] == ["k00004", "k00018"]


def test_the_fastest_in_one_run_is_the_champion() -> None:
    times_us = {
        "k00004": {"a": 10.0, "b": 40.0},
        REFERENCE: {"a": 20.0, "b": 80.0},
        "k00012": {"a": 12.0, "b": 36.0},
        "k00013": {"a": 9.0, "b": 36.0},
    }
    final = Final.of("k00004", evaluation(times_us, "k00004"))
    assert final.times_us == times_us
    assert final.ranking() == ["k00013", "k00004", "k00012"] and final.champion == "k00013"
    for name in final.ranking():
        assert final.speedup(name) == pytest.approx(final.geomean_us(REFERENCE) / final.geomean_us(name), rel=1e-12)


def test_without_times_the_incumbent_stays() -> None:
    final = Final.of("k00004", Evaluation(verdict=Verdict.INFRASTRUCTURE, reason="the device is busy"))
    assert final.champion == "k00004" and final.ranking() == [] and "the device is busy" in final.failure
