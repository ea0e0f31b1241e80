"""Training data from campaigns: examples, rewards, repairs, secrets."""

import json
import math

import pytest

from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Attempt, Author, Experiment, Verdict
from kernel_scientist.report import training
from tests.trials import trial


def experiment(low: float, high: float) -> Experiment:
    return Experiment(title="t", description="d", rubric=("r",), uplift=(low, high), innovation=1)


def designed(made: Trial, low: float, high: float, designer: str = "m", **changes: object) -> Trial:
    update = {"experiment": experiment(low, high), "authors": {"designer": Author(model=designer)}, **changes}
    return made.model_copy(update={"kernel": made.kernel.model_copy(update=update)})


POPULATION = Population(
    (
        trial("k00001", 1.0),
        designed(trial("k00002", 1.1, {"k00001": (1.05, 1.15)}, base="k00001"), 5, 20),
        designed(trial("k00003", 1.0, {"k00001": (0.95, 1.05)}, base="k00001"), 10, 30),
        designed(trial("k00004", None, base="k00001"), 10, 30),
        designed(trial("k00005", 1.3, {"k00001": (1.2, 1.4)}, base="k00001"), 0, 0, tuned_from="k00001"),
        designed(trial("k00006", 1.2, {"k00001": (1.1, 1.3)}, base="k00001"), 0, 10, designer="n"),
    )
)


def examples(population: Population) -> list[dict[str, object]]:
    return list(training.examples(population, "c", "p", "cpu"))


def test_every_experiment_is_an_example_with_an_ordinal_reward() -> None:
    rows = {e["child"]["kernel"]: e for e in examples(POPULATION)}  # type: ignore[index]
    assert {k: e["reward"] for k, e in rows.items()} == {
        "k00002": 4,
        "k00003": 3,
        "k00004": 2,
        "k00005": 4,
        "k00006": 4,
    }
    first = rows["k00002"]
    assert first["parent"]["source"] == "# k00001" and first["timings"][0]["case"] == "c"  # type: ignore[index]
    assert first["log2_over_parent"] == pytest.approx(math.log2(1.1), abs=1e-4)
    assert json.loads(json.dumps(list(rows.values()))) == list(rows.values())


def test_a_repair_is_a_pair_of_versions() -> None:
    attempts = tuple(
        Attempt(source=f"bad {n}", verdict=v, reason="no", bug="A.1", critique="wrong")
        for n, v in enumerate((Verdict.COMPILE_ERROR, Verdict.CRASHED))
    )
    made = designed(trial("k00002", 1.1, {"k00001": (1.05, 1.15)}, base="k00001"), 5, 20, attempts=attempts)
    rows = examples(Population((trial("k00001", 1.0), made)))
    assert [e["reward"] for e in rows] == [0, 1, 4]
    assert [e.get("repaired_by") for e in rows] == ["bad 1", "# k00002", None]


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
