"""In every JSON, table and metric a ratio is the quotient of the times next to it."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.campaign import results
from kernel_scientist.population import standings
from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import factors
from kernel_scientist.records.evaluation import Evaluation, PairedTime, Speedup, Timing, Trial, geomean
from kernel_scientist.records.factors import UNRESOLVED, UNTIMED
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.records.results import HeldOutResult, PairResult, SpeedupResult, ValidationResult
from kernel_scientist.report import tables
from kernel_scientist.report.pages import kernels
from kernel_scientist.tracking import run_content
from tests.trials import trial

times = st.floats(1e-1, 1e6, allow_nan=False)  # quotients stay far below what stands for "no interval"


@st.composite
def speedups(draw: st.DrawFn, against: str = REFERENCE, cases: int = 4) -> Speedup:
    count = draw(st.integers(1, cases))
    drawn = [(draw(times), draw(times)) for _ in range(count)]
    pairs = {
        f"c{i}": PairedTime(time_us=us, against_us=other, interval=(0.9 * other / us, 1.1 * other / us))
        for i, (us, other) in enumerate(drawn)
    }
    ratio = geomean([p.ratio for p in pairs.values()])
    return Speedup(against=against, ratio=ratio, interval=(ratio * 0.9, ratio * 1.1), cases=pairs)


def evaluation(speedup: Speedup) -> Evaluation:
    timings = tuple(
        Timing(case=case, time_us=pair.time_us, interval_us=(pair.time_us, pair.time_us), floor_us=0.01)
        for case, pair in speedup.cases.items()
    )
    return Evaluation(verdict=Verdict.OK, timings=timings, speedups=(speedup,))


def quotient(rows: Sequence[PairResult]) -> float:
    return math.exp(sum(math.log(row.against_us / row.time_us) for row in rows) / len(rows))


def shows(text: str, value: float) -> bool:
    """Whether a printed ratio such as 1.94x is `value`: it has four digits, the printed times five."""
    number, has_interval, _ = text.partition("x [")
    return bool(has_interval) and float(number) == pytest.approx(value, rel=7e-4)


@given(speedups())
def test_in_json(speedup: Speedup) -> None:
    found = SpeedupResult.model_validate_json(results.of_speedup(speedup).model_dump_json())
    assert found.ratio == pytest.approx(quotient(found.cases), rel=1e-12)
    assert found.ratio == pytest.approx(speedup.ratio, rel=1e-5)
    assert bool(found.interval_why) == (found.interval is None), "an interval that is null says why"
    rows = [
        PairResult(case=row.case, time_us=row.time_us, against_us=row.against_us or 0.0, interval=row.ratio_interval)
        for row in results.cases(evaluation(speedup).timings, speedup.cases)
    ]
    assert tuple(rows) == found.cases


def test_too_few_blocks_for_an_interval_are_named() -> None:
    found = results.of_speedup(Speedup(against="reference", ratio=2.0, interval=UNRESOLVED))
    assert found.interval is None and "fewer blocks" in found.interval_why
    assert results.beside(None, None).interval_why == UNTIMED


@given(speedups())
def test_in_the_table_of_an_evaluation(speedup: Speedup) -> None:
    found = results.of_speedup(speedup)
    printed = tables.case_table(results.cases(evaluation(speedup).timings, speedup.cases), found).cells
    assert [row["case"] for row in printed] == [*speedup.cases, "geometric mean"]
    for row in printed:
        assert shows(row["speedup"], float(row["against_us"]) / float(row["time_us"]))
    assert shows(printed[-1]["speedup"], found.ratio)


@given(speedups(), speedups(), st.booleans())
def test_in_the_table_of_a_confirmation(public: Speedup, held_out: Speedup, resolved: bool) -> None:
    if not resolved:
        public = public.model_copy(update={"interval": UNRESOLVED})
    hidden = HeldOutResult(cases=(), speedups=(results.of_speedup(held_out),))
    validation = ValidationResult.model_construct(speedups=(results.of_speedup(public),), held_out=hidden, bars=())
    reference, champion = tables.confirmed_table(validation, "k00002").cells
    quotient_us = float(reference["us"]) / float(champion["us"])
    unknown = f"not resolved (no interval: {factors.TOO_FEW})"
    assert shows(reference["ratio"], quotient_us) if resolved else reference["ratio"] == unknown
    assert shows(reference["held_out_ratio"], float(reference["held_out_us"]) / float(champion["held_out_us"]))


@given(speedups())
def test_in_the_rows_of_the_page(speedup: Speedup) -> None:
    made = Trial(kernel=Kernel(name="k00001", language="cpp", source=""), evaluation=evaluation(speedup))
    row = kernels.best(Population((made,)), made, by_model=False, most=3).cells[0]
    assert shows(row["speedup"], float(row["reference_us"]) / float(row["us"]))


@given(speedups())
def test_in_metrics(speedup: Speedup) -> None:
    made = Trial(kernel=Kernel(name="k00001", language="cpp", source=""), evaluation=evaluation(speedup))
    metrics = run_content.measured(made, Population())
    meant = {"rel": 0.006}  # rounded to two digits of the interval's half-width, which is a tenth here
    assert metrics["speedup"] == pytest.approx(metrics["reference_geomean_us"] / metrics["geomean_us"], **meant)
    assert metrics["speedup_low"] < metrics["speedup"] < metrics["speedup_high"]
    for case in speedup.cases:
        ratio = metrics[f"reference_us/{case}"] / metrics[f"time_us/{case}"]
        assert ratio == pytest.approx(speedup.cases[case].ratio, rel=1e-9)
    progress = run_content.speedup_metrics(made.evaluation, "best_")
    assert progress["best_speedup"] == metrics["speedup"]
    confirmed = run_content.comparison_metrics([speedup], "confirmed_")
    over = confirmed["confirmed_geomean_us.reference"] / confirmed["confirmed_geomean_us"]
    assert confirmed["confirmed_speedup_over_reference"] == pytest.approx(over, rel=0.02)


@given(st.dictionaries(st.sampled_from(["k00001", "k00004", "k00012"]), times, min_size=3), times)
def test_in_the_final(geomeans: dict[str, float], reference_us: float) -> None:
    population = Population(tuple(trial(name, 1.5) for name in geomeans))
    times_us = {name: {"c": us} for name, us in geomeans.items()} | {REFERENCE: {"c": reference_us}}
    over = {name: reference_us / us for name, us in geomeans.items()}
    pairs = {n: PairedTime(time_us=us, against_us=reference_us) for n, us in geomeans.items()}
    found = {
        name: Speedup(against=REFERENCE, ratio=r, interval=(0.9 * r, 1.1 * r), cases={"c": pairs[name]})
        for name, r in over.items()
    }
    final = Final(incumbent="k00004", times_us=times_us, speedups=found)
    metrics = run_content.final_metrics(final)
    ranked = standings.final_rows(population, final)
    for row, printed in zip(ranked, tables.final_table(ranked).cells, strict=True):
        assert row.speedup and row.reference_us and row.geomean_us
        assert row.speedup == pytest.approx(row.reference_us / row.geomean_us, rel=1e-12)
        for prefix in ("", "recorded_"):
            quotient_us = float(printed[f"{prefix}reference_us"]) / float(printed[f"{prefix}geomean_us"])
            assert shows(printed[f"{prefix}speedup"], quotient_us)
        us = metrics[f"final_geomean_us.{row.kernel}"]
        ratio = metrics[f"final_geomean_us.{REFERENCE}"] / us
        assert metrics[f"final_speedup.{row.kernel}"] == pytest.approx(ratio, rel=0.006)
        assert metrics[f"final_speedup_low.{row.kernel}"] < ratio


def test_too_few_blocks_give_interval_why() -> None:
    pair = PairedTime(time_us=2.0, against_us=1.0)
    dropped = Speedup(against="reference", ratio=0.5, interval=UNRESOLVED, cases={"c": pair})
    found = results.of_speedup(dropped)
    assert found.interval is None
    assert f"reference: not resolved (no interval: {factors.TOO_FEW})" in tables.speedup_line(found)
    assert "speedup" not in run_content.factor_metrics("speedup", dropped)


def test_a_kernel_that_was_dropped_has_no_interval_for_that_reason() -> None:
    pair, why = PairedTime(time_us=23.0, against_us=1.0), factors.dropped(2, "k00004", 0.7)
    dropped = Speedup(against="reference", ratio=1 / 23, interval=UNRESOLVED, cases={"c": pair}, dropped=why)
    found = results.of_speedup(dropped)
    assert found.interval is None and found.interval_why == why
    said = f"not resolved (no interval: {why})"
    assert "after 2 blocks" in why and "k00004" in why and "below 0.7" in why
    assert said in tables.speedup_line(found) and str(dropped) == said
    assert factors.percent(dropped.ratio, dropped.interval, dropped.dropped) == said
    assert Speedup.model_validate_json(dropped.model_dump_json()) == dropped
