"""Suites: a campaign for each of many problems, and what is made of their results."""

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from kernel_scientist.campaign import campaign_process, suite
from kernel_scientist.campaign.suite import Suite, summary
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.params import Params
from kernel_scientist.records.suite_result import BaselineSpeedup, SuiteResult, SuiteRow
from kernel_scientist.report import tables
from tests import results
from tests.conftest import ROOT, Cli, lab_environment

pytestmark = pytest.mark.slow

LEVEL = ROOT / "tests/problems/kernelbench/level1"


def row(problem: str, campaign: str | None, eager: BaselineSpeedup, usd: float = 0, **more: Any) -> SuiteRow:
    made = {"correct": eager.ratio is not None, "times": "measured" if campaign else "", "reason": "", **more}
    return SuiteRow(problem=problem, campaign=campaign, over_eager=eager, usd=usd, **made)


ROWS = (
    row(
        "a",
        "a-1",
        BaselineSpeedup(ratio=2.0, interval=(1.6, 2.5)),
        0.5,
        over_compiled=BaselineSpeedup(ratio=1.4, interval=(1.3, 1.5)),
    ),
    row(
        "b",
        "b-1",
        BaselineSpeedup(ratio=1.2, interval=(0.9, 1.6)),
        0.25,
        over_compiled=BaselineSpeedup(remark="no compiler"),
    ),
    row("c", "c-1", BaselineSpeedup(ratio=0.5, interval=(0.4, 0.6))),
    row("d", "d-1", BaselineSpeedup()),
    row("e", None, BaselineSpeedup(), reason="it needs a GPU"),
)


def test_fast_p_counts_correct_kernels_that_are_more_than_p_times_as_fast() -> None:
    found = summary("one", ROWS)
    assert found.over_eager.fast_p == {"0": 0.6, "1": 0.4, "1.5": 0.2, "2": 0.0}  # 2.0 is not more than 2
    assert found.over_eager.fast_p_shown == {"0": 0.6, "1": 0.2, "1.5": 0.2, "2": 0.0}
    assert found.problems == 5 and found.refused == 1 and found.usd == 0.75
    assert found.over_eager.geomean_correct == pytest.approx((2.0 * 1.2 * 0.5) ** (1 / 3))
    assert found.over_eager.geomean_faster == pytest.approx((2.0 * 1.2) ** 0.5)
    over = found.over_compiled
    assert over.compared == 3 and over.fast_p == {"0": 1 / 3, "1": 1 / 3, "1.5": 0.0, "2": 0.0}, "b and c have none"
    said = "\n".join(str(part) for part in tables.suite(found))
    assert "torch.compile has no time on b: no compiler" in said
    assert "over the eager reference, 5 problems, measured times: p 0: 60.0 %" in said


def test_a_suite_on_a_model_target_compares_predictions(tmp_path: Path) -> None:
    metrics = tmp_path / "campaign.json"
    eager = results.bar("PyTorch eager", 30.0, "predicted by a model")
    compiled = results.bar("torch.compile", None, "not predicted: it depends on values")
    found = results.campaign(
        champion="k1", why="predicted", bars=(eager, compiled), verdict=Verdict.OK, predicted=results.predicted(12.0)
    )
    metrics.write_text(found.model_dump_json())
    right = suite.result_row(Path("level1/1_A.py"), metrics, "")
    assert right.correct and right.over_eager.ratio == 2.5 and right.times == "predicted"
    result = summary("one", [right])
    assert result.over_eager.fast_p["2"] == 1.0 and result.over_compiled.compared == 0
    assert "predicted times" in "\n".join(str(part) for part in tables.suite(result))
    metrics.write_text(found.model_copy(update={"verdict": Verdict.INCORRECT}).model_dump_json())
    wrong = suite.result_row(Path("level1/1_A.py"), metrics, "")
    assert not wrong.correct and wrong.over_eager.ratio is None
    assert summary("one", [wrong]).over_eager.fast_p == {"0": 0.0, "1": 0.0, "1.5": 0.0, "2": 0.0}


@pytest.mark.parametrize("reason", ["error: no MLflow server answers", "error: the disk is full", "Traceback"])
def test_a_problem_without_a_result_is_tried_again(
    reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def called(command: Sequence[str], log: Path, api: str | None) -> str:
        calls.append(list(command))
        return reason

    calls = list[list[str]]()
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(tmp_path))
    monkeypatch.setattr(campaign_process, "called", called)
    one, two = Suite("one", (LEVEL / "1_A.py",)), Suite("two", (LEVEL / "1_A.py",))
    one.begin()
    two.begin()
    rows = [one.run(LEVEL / "1_A.py", (), None) for _ in range(2)] + [two.run(LEVEL / "1_A.py", (), None)]
    assert [one.reason for one in rows] == [reason] * 3
    named = [next(part for part in call if part.startswith("tracking.suite=")) for call in calls]
    assert named[0] == named[1] != named[2] and all("--resume" in call for call in calls)


def test_a_result_is_kept_once_models_replied_and_the_confirmation_was_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def called(command: Sequence[str], log: Path, api: str | None) -> str:
        metrics = Path(command[command.index("--metrics") + 1])
        assert not metrics.exists()
        found = results.campaign(champion="k1", speedup=1.5, interval=(1.4, 1.6), confirmed=True, **outcomes.pop(0))
        metrics.write_text(found.model_dump_json())
        return ""

    done, no_reply = "all generations are done", "llm.writer: no model replies; a: no answer"
    outcomes = [{"verdict": "infrastructure", "stopped": done}, {"verdict": "ok", "stopped": no_reply}]
    outcomes.append({"verdict": "ok", "stopped": done})
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(tmp_path))
    monkeypatch.setattr(campaign_process, "called", called)
    one = Suite("one", (LEVEL / "1_A.py",))
    one.begin()
    assert [one.run(LEVEL / "1_A.py", (), None).correct for _ in range(4)] == [False, True, True, True]
    assert not outcomes


def test_names_of_results_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(tmp_path))
    paths = ("set/gemm-1.5", "set/gemm-1.7", "a/level1/1_X.py", "b/level1/1_X.py")
    one = Suite("one", tuple(tmp_path / path for path in paths))
    assert len({one.folder_of(place) for place in one.places}) == 4


def test_a_suite_takes_the_problems_below_a_path_in_order(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("\n")
    with pytest.raises(SetupError, match="is empty: it is no problem"):
        Suite.of("one", [str(tmp_path / "empty.py")], None)
    found = Suite.of("one", [str(LEVEL.parent)], 1)
    assert [place.stem.partition("_")[0] for place in found.places] == list("123456")
    with pytest.raises(SetupError, match="use --jobs 1"):
        found.require_quiet(Params(target="cpu"), 2)
    found.require_quiet(Params(target="cpu"), 1)
    found.require_quiet(Params(language="triton", target="model:mi300x"), 2)
    with pytest.raises(SetupError, match="is in a folder level2"):
        Suite.of("one", [str(LEVEL)], 2)


def test_a_suite_runs_campaigns_and_goes_on_with_those_that_are_left(
    lab: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = lab / "problems/level1"
    level.mkdir()
    for name in ("2_Cross_entropy", "3_Norm_in_training", "6_Needs_a_package"):
        shutil.copy(LEVEL / f"{name}.py", level)
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    (started := Suite.of("one", [str(level)], 1)).begin()
    done = started.folder_of(level / "3_Norm_in_training.py") / "result.json"
    done.parent.mkdir(parents=True)
    kept = row("level1/3_Norm_in_training", "kept", BaselineSpeedup(ratio=1.7, interval=(1.6, 1.8)))
    done.write_text(kept.model_dump_json())
    settings = ("search.generations=1", "harness.noise_runs=0", "harness.stages=1", "harness.pairs=0")
    sets = [part for setting in settings for part in ("--set", setting)]
    found = cli("suite", str(level), "--level", "1", "--name", "one", "--json", *sets)
    result = SuiteResult.model_validate_json(found.stdout)
    rows = {one.problem.partition("/")[2]: one for one in result.rows}
    assert rows["3_Norm_in_training"].campaign == "kept"
    assert "a_package_nobody_has" in rows["6_Needs_a_package"].reason
    new = rows["2_Cross_entropy"]
    assert new.correct and new.campaign and new.campaign.startswith("level1-2_Cross_entropy-cpu"), new
    assert new.over_eager.ratio and result.over_eager.fast_p["0"] == pytest.approx(2 / 3)
    assert result.over_eager.fast_p["1.5"] == pytest.approx((1 + (new.over_eager.ratio > 1.5)) / 3)
    results = {p.name: started.folder_of(p) / "result.json" for p in started.places}
    assert SuiteRow.model_validate_json(results["2_Cross_entropy.py"].read_text()) == new
    assert not results["6_Needs_a_package.py"].exists(), "the package may be installed by the next call"


OPERATIONS = (
    *("torch.relu(x)", "torch.tanh(x) * 0.5", "torch.sigmoid(x)", "x.abs().sqrt()", "torch.softmax(x, dim=-1)"),
    *("x.sum(dim=1)", "x.cumsum(dim=1)", "torch.nn.functional.gelu(x)", "x.mean(dim=0)", "(x * x).amax(dim=1)"),
)
FILE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return {operation}


def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return []
"""


@pytest.mark.soak
@pytest.mark.timeout(2400)
def test_a_suite_of_ten_problems_goes_on_after_sigkill(lab: Path) -> None:
    """The suite alone is killed, twice, in the middle of a campaign; no campaign is begun twice."""
    level, results = lab / "problems/level1", lab / "reports/suites/ten"
    level.mkdir()
    for number, operation in enumerate(OPERATIONS, 1):
        (level / f"{number}_Operation.py").write_text(FILE.format(operation=operation))
    settings = ("search.generations=1", "search.experiments=2", "harness.blocks=4", "harness.stages=1")
    command = [sys.executable, "-m", "kernel_scientist", "suite", str(level), "--name", "ten", "--json"]
    command += [part for setting in settings for part in ("--set", setting)]
    with (lab / "suite.log").open("w+") as log:
        for _ in range(2):
            before = len(list(results.glob("*/result.json")))
            process = subprocess.Popen(command, cwd=lab, env=lab_environment(lab), stdout=log, stderr=log)
            while len(list(results.glob("*/result.json"))) < before + 2:
                assert process.poll() is None, Path(log.name).read_text()
                time.sleep(0.5)
            time.sleep(8)
            process.kill()
            process.wait()
    done = subprocess.run(command, cwd=lab, env=lab_environment(lab), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = SuiteResult.model_validate_json(done.stdout)
    rows = result.rows
    assert len(rows) == 10 and not result.refused and all(one.correct for one in rows), rows
    for p in (0, 1, 1.5, 2):
        assert result.over_eager.fast_p[f"{p:g}"] == sum((one.over_eager.ratio or 0) > p for one in rows) / 10
    compared = [one.over_compiled.ratio for one in rows if one.over_compiled.ratio is not None]
    assert result.over_compiled.compared == len(compared) > 0
    assert result.over_compiled.fast_p["1"] == sum(ratio > 1 for ratio in compared) / len(compared)
    client = MlflowClient(f"sqlite:///{lab}/mlruns/mlflow.db")
    for one in rows:
        experiment = client.get_experiment_by_name(f"{one.problem}-cpu")
        assert experiment is not None
        runs = client.search_runs([experiment.experiment_id], "tags.kind = 'campaign'")
        assert [run.data.tags["campaign"] for run in runs] == [one.campaign]
    parent = client.get_run(str(result.mlflow))
    assert parent.data.metrics["fast_1"] == result.over_eager.fast_p["1"]


def test_problems_of_one_name_resume_their_own_campaigns(tmp_path: Path) -> None:
    campaign_process.begin(tmp_path / "suite")
    owns = [campaign_process.folder_of(tmp_path / "suite", tmp_path / place / "rmsnorm") for place in ("a", "b")]
    assert len({campaign_process.tag(tmp_path / "suite", own) for own in owns}) == 2
