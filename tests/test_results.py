"""What comes out besides a champion: calibration, training data, two sides compared."""

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.population import prediction_accuracy
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import UNRESOLVED, Speedup, Trial
from kernel_scientist.records.kernel import Attempt, Author, Experiment, Verdict
from kernel_scientist.report import contest, summaries, terminal, training
from kernel_scientist.report.contest import Entry
from tests.test_population import trial


def experiment(low: float, high: float) -> Experiment:
    return Experiment(title="t", description="d", rubric=("r",), uplift=(low, high), innovation=1)


def designed(made: Trial, low: float, high: float, designer: str = "m", **changes: object) -> Trial:
    update = {"experiment": experiment(low, high), "authors": {"designer": Author(model=designer)}, **changes}
    return made.model_copy(update={"kernel": made.kernel.model_copy(update=update)})


POPULATION = Population(
    (
        trial("k00001", 1.0),
        designed(trial("k00002", 1.1, {"k00001": (1.05, 1.15)}, base="k00001"), 5, 20),
        designed(trial("k00003", 1.0, {"k00001": (0.9, 1.1)}, base="k00001"), 10, 30),
        designed(trial("k00004", None, base="k00001"), 10, 30),
        designed(trial("k00005", 1.3, {"k00001": (1.2, 1.4)}, base="k00001"), 0, 0, tuned_from="k00001"),
        designed(trial("k00006", 1.2, {"k00001": (1.1, 1.3)}, base="k00001"), 0, 10, designer="n"),
    )
)


def test_promises_are_held_against_measurements_per_designer() -> None:
    rows = {row["designer"]: row for row in prediction_accuracy.table(prediction_accuracy.predictions(POPULATION))}
    assert set(rows) == {"m", "n"} and rows["m"]["experiments"] == 3  # a tuner promises nothing
    assert rows["m"]["failed"] == pytest.approx(1 / 3, abs=1e-3) and rows["m"]["held"] == 0.5
    assert rows["n"]["measured"] == pytest.approx(20) and rows["n"]["bias"] == pytest.approx(-15)


@given(st.lists(st.integers(-50, 200), min_size=4, max_size=20, unique=True))
def test_rank_correlation_is_one_for_what_rises_together(values: list[int]) -> None:
    first = [float(v) for v in values]
    assert prediction_accuracy._rank_correlation(first, [v**3 for v in first]) == 1
    assert prediction_accuracy._rank_correlation(first, [-v for v in first]) == -1


def examples(population: Population) -> list[dict[str, object]]:
    return list(training.examples(population, "c", "p", "cpu"))


def test_every_experiment_is_an_example_with_an_ordinal_reward() -> None:
    found = {e["child"]["kernel"]: e for e in examples(POPULATION)}  # type: ignore[index]
    assert {k: e["reward"] for k, e in found.items()} == {
        "k00002": 4,
        "k00003": 3,
        "k00004": 2,
        "k00005": 4,
        "k00006": 4,
    }
    one = found["k00002"]
    assert one["parent"]["source"] == "# k00001" and one["timings"][0]["case"] == "c"  # type: ignore[index]
    assert one["log2_over_parent"] == pytest.approx(math.log2(1.1), abs=1e-4)
    assert json.loads(json.dumps(list(found.values()))) == list(found.values())


def test_a_repair_is_a_pair_of_versions() -> None:
    attempts = tuple(
        Attempt(source=f"bad {n}", verdict=v, reason="no", bug="A.1", critique="wrong")
        for n, v in enumerate((Verdict.COMPILE_ERROR, Verdict.CRASHED))
    )
    made = designed(trial("k00002", 1.1, {"k00001": (1.05, 1.15)}, base="k00001"), 5, 20, attempts=attempts)
    found = examples(Population((trial("k00001", 1.0), made)))
    assert [e["reward"] for e in found] == [0, 1, 4]
    assert [e.get("mended_by") for e in found] == ["bad 1", "# k00002", None]


KEYS = (
    "sk-" + "a1B2" * 8,
    "sk-proj-" + "x_9-" * 8,
    "hf_" + "Q" * 30,
    "ghp_" + "z" * 36,
    "AKIA" + "ABCDEFGH12345678",
    "Bearer " + "t" * 30,
    "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
)


@pytest.mark.parametrize("key", KEYS)
def test_keys_do_not_leave(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_API_KEY", "hunter2-hunter2")
    made = designed(trial("k00002", 1.1, base="k00001"), 5, 20, source=f"# {key} hunter2-hunter2", report=f"({key})")
    text = json.dumps(examples(Population((trial("k00001", 1.0), made))))
    assert key.split()[-1] not in text and "hunter2" not in text and "[secret]" in text


def entries(finals: list[float], side: str, **settings: str) -> list[Entry]:
    return [
        Entry(name=f"{side}{n}", seed=str(n), curve=(1.0, final), settings={"search.strategy": side, **settings})
        for n, final in enumerate(finals)
    ]


def test_a_real_difference_is_said_and_none_is_made_up() -> None:
    better, worse = [1.5, 1.6, 1.7, 1.8, 1.9], [1.4, 1.5, 1.6, 1.7, 1.8]
    found = contest.compare(entries(better, "tree"), entries(worse, "greedy"))
    assert found["budget_kernels"] == 2 and "the first is better" in found["says"]
    assert found["p_first_better"] == pytest.approx(1 / 32, abs=1e-4) and found["ratio"] > 1.05
    assert found["differ_in"] == {"search.strategy": ["tree", "greedy"]}
    same = contest.compare(entries(better, "a"), entries(better[::-1], "b"))
    assert "no difference" in same["says"] and same["ratio"] == 1.0


def test_few_repeats_say_nothing() -> None:
    found = contest.compare(entries([2.0], "a"), entries([1.0], "b"))
    assert found["p_first_better"] is None and "nothing can be said" in found["says"]


@given(st.lists(st.floats(0.5, 4), min_size=5, max_size=9), st.randoms(use_true_random=False))
def test_swapping_the_sides_swaps_the_test(finals: list[float], rng: object) -> None:
    others = [f * 1.1 for f in reversed(finals)]
    one, two = (
        contest.compare(*pair)
        for pair in (
            (entries(finals, "a"), entries(others, "b")),
            (entries(others, "b"), entries(finals, "a")),
        )
    )
    assert one["p_first_better"] == two["p_second_better"]


def test_a_curve_rises_by_tests_alone() -> None:
    lucky = trial("k00003", 5.0, {"k00002": (0.5, 9.0)}, base="k00002")
    population = Population((trial("k00001", 1.0), trial("k00002", 2.0, {"k00001": (1.8, 2.2)}), lucky))
    assert contest.curve(population) == (1.0, 2.0, 2.0)


def test_the_page_of_a_contest_shows_both_sides(tmp_path: Path) -> None:
    found = contest.compare(entries([1.5, 1.7], "tree"), entries([1.2, 1.3], "greedy"))
    contest.write(found, tmp_path / "contest.html")
    page = (tmp_path / "contest.html").read_text()
    assert page.count("<polyline") == 2 and "tree0, tree1" in page and "search.strategy: tree against greedy" in page


def test_records_with_many_fields_stand_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"case": f"case{i}", **{f"field{j}": 100 * i + j for j in range(15)}} for i in range(8)]
    terminal.show({"clocks": records, "cases": [{"case": "a", "x": 1.0}]})
    lines = [line for line in capsys.readouterr().out.splitlines() if "field14" in line]
    assert [re.findall(r"\d+", line)[1:] for line in lines] == [
        [str(100 * i + 14) for i in range(6)],
        ["614", "714"],
    ]


def test_a_speedup_of_too_few_blocks_is_told_without_an_interval(capsys: pytest.CaptureFixture[str]) -> None:
    dropped = Speedup(against="reference", ratio=0.5, interval=UNRESOLVED)
    found = summaries._speedup(dropped)
    assert found["interval"] is None and found["resolved"] is False
    terminal.show({"speedup": found})
    told = capsys.readouterr().out
    assert "resolved False" in told and "ratio 0.5" in told and not re.search(r"interval|slower_cases|1000", told)
