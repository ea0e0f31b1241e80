"""The lab notebook on a real MLflow store: what is written is read back, once."""

import math
import threading
from pathlib import Path

import pytest

from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.taskfolder import load
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import CompileReport, Evaluation, Trial
from kernel_scientist.records.kernel import Experiment, Kernel, Verdict
from kernel_scientist.scientist.llm.reply_store import Message, Question, Reply
from kernel_scientist.tracking.mlflow_store import CampaignRun, Notebook, reach
from tests.conftest import ROOT
from tests.test_population import trial

PROBLEM = load(ROOT / "problems" / "identity")
EXPERIMENT = Experiment(
    title="unroll: 1 -> 2", description="Faster.", rubric=("set it",), uplift=(-5, 12), innovation=15
)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Notebook:
    return Notebook(f"sqlite:///{tmp_path_factory.mktemp('mlruns')}/mlflow.db", "identity-cpu")


@pytest.fixture
def campaign(notebook: Notebook, request: pytest.FixtureRequest) -> CampaignRun:
    return notebook.start(request.node.name, {"search": {"generations": 3}, "problem": "identity"}, PROBLEM)


def failed(name: str) -> Trial:
    kernel = Kernel(
        name=name, language="cpp", source=f"bad {name}", base="k00001", reference="k00001", experiment=EXPERIMENT
    )
    report = CompileReport(ok=False, compiler="g++", log="kernel.cpp:1: error: no\n")
    evaluation = Evaluation(verdict=Verdict.COMPILE_ERROR, reason="error: no", compile=report, seconds={"compile": 0.5})
    return Trial(kernel=kernel, evaluation=evaluation)


def log(notebook: Notebook, campaign: CampaignRun, trials: list[Trial]) -> Population:
    population = Population()
    for one in trials:
        notebook.log(campaign, one, population, PROBLEM)
        population = population.add(one)
        notebook.progress(campaign, population, population.best())
    return population


def test_a_population_is_read_back_as_it_was_written(notebook: Notebook, campaign: CampaignRun) -> None:
    child = trial("k00002", 2.0, {"k00001": (1.8, 2.2)}, base="k00001")
    child = child.model_copy(
        update={"kernel": child.kernel.model_copy(update={"experiment": EXPERIMENT, "generation": 1})}
    )
    written = log(notebook, campaign, [trial("k00001", 1.0), child, failed("k00003")])
    found = notebook.latest(campaign.campaign)
    assert found is not None and found.run_id == campaign.run_id and found.params["search.generations"] == "3"
    assert notebook.population(found).trials == written.trials


def test_runs_say_what_a_user_compares(notebook: Notebook, campaign: CampaignRun) -> None:
    child = trial("k00002", 2.0, {"k00001": (1.8, 2.2)}, base="k00001")
    child = child.model_copy(update={"kernel": child.kernel.model_copy(update={"experiment": EXPERIMENT})})
    log(notebook, campaign, [trial("k00001", 1.0), child, failed("k00003")])
    runs = {r.data.tags["kernel"]: r for r in notebook._children(campaign.run_id)}
    good, bad = runs["k00002"], runs["k00003"]
    assert good.data.metrics["speedup"] == 2.0 and good.data.metrics["geomean_us"] == pytest.approx(50)
    assert good.data.metrics["measured_uplift"] == pytest.approx(100) and good.data.metrics["time_us.c"] == 50.0
    assert good.data.params["experiment"] == "unroll" and good.data.params["predicted_uplift_max"] == "12.0"
    assert good.data.params["base"] == "k00001" and good.data.tags["verdict"] == "ok"
    assert good.inputs.dataset_inputs[0].dataset.name == "identity"
    files = {f.path for f in notebook.client.list_artifacts(good.info.run_id)}
    assert files == {"source", "base.diff", "evaluation.json", "experiment.json"}
    assert bad.data.tags["verdict"] == "compile_error" and bad.data.tags["reason"] == "error: no"
    assert not {"speedup", "geomean_us"} & set(bad.data.metrics) and bad.data.metrics["compile_s"] == 0.5
    assert "compiler.txt" in {f.path for f in notebook.client.list_artifacts(bad.info.run_id)}
    assert all(math.isfinite(v) for r in runs.values() for v in r.data.metrics.values())
    history = notebook.client.get_metric_history(campaign.run_id, "best_speedup")
    assert [(m.step, m.value) for m in history] == [(1, 1.0), (2, 2.0), (3, 2.0)]


def test_writing_a_kernel_twice_makes_one_run(notebook: Notebook, campaign: CampaignRun) -> None:
    one = trial("k00001", 1.0)
    assert notebook.log(campaign, one, Population(), PROBLEM) == notebook.log(campaign, one, Population(), PROBLEM)
    assert len(notebook._children(campaign.run_id)) == 1


def test_a_run_that_was_being_written_is_removed_on_resume(notebook: Notebook, campaign: CampaignRun) -> None:
    log(notebook, campaign, [trial("k00001", 1.0)])
    torn = trial("k00002", 2.0)
    real = notebook.client.log_artifacts
    notebook.client.log_artifacts = _fail
    with pytest.raises(RuntimeError, match="killed here"):
        notebook.log(campaign, torn, Population(), PROBLEM)
    notebook.client.log_artifacts = real
    assert len(notebook._children(campaign.run_id)) == 2
    assert [t.kernel.name for t in notebook.population(campaign)] == ["k00001"]
    assert notebook.reopen(campaign) == 1
    assert len(notebook._children(campaign.run_id)) == 1
    notebook.log(campaign, torn, Population(), PROBLEM)
    assert [t.kernel.name for t in notebook.population(campaign)] == ["k00001", "k00002"]


def test_threads_write_side_by_side(notebook: Notebook, campaign: CampaignRun) -> None:
    trials = [trial(f"k{n:05d}", 1.0 + n) for n in range(1, 13)]
    threads = [threading.Thread(target=notebook.log, args=(campaign, t, Population(), PROBLEM)) for t in trials]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert notebook.population(campaign).trials == tuple(trials)


def test_a_champion_is_registered_with_its_source(notebook: Notebook, campaign: CampaignRun, tmp_path: Path) -> None:
    import mlflow

    one, two = trial("k00001", 1.0), trial("k00002", 2.0)
    log(notebook, campaign, [one, two])
    notebook.register(campaign, one.kernel, "identity-cpu")
    notebook.register(campaign, two.kernel, "identity-cpu")
    mlflow.set_tracking_uri(notebook.uri)
    folder = mlflow.artifacts.download_artifacts("models:/identity-cpu@champion", dst_path=str(tmp_path))
    assert (Path(folder) / "kernel.py").read_text() == two.kernel.source


def test_a_trace_that_a_kill_left_without_its_span_is_written_again(
    notebook: Notebook, campaign: CampaignRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = Question(model="m", parameters={}, messages=(Message(role="user", content="why?"),))
    answers = [
        Reply(question=question, text=text, role="writer", place="write/k00001/0", campaign=campaign.campaign, time=n)
        for n, text in enumerate(("because", "so"), 1)
    ]

    def found() -> list[str]:
        traces = notebook.client.search_traces(
            locations=[notebook.experiment_id],
            filter_string=f"request_metadata.`mlflow.sourceRun` = '{campaign.run_id}'",
        )
        return sorted(trace.data.spans[0].outputs["content"] for trace in traces)

    killed = Notebook(notebook.uri, "identity-cpu")
    with monkeypatch.context() as m:
        m.setattr(killed._traces._client, "log_spans", _fail)
        with pytest.raises(RuntimeError, match="killed here"):
            killed.log_spending(campaign, answers)
    assert found() == []
    for _ in range(2):
        Notebook(notebook.uri, "identity-cpu").log_spending(campaign, answers)
        assert found() == ["because", "so"]


def test_a_store_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="cannot be made"):
        reach(f"sqlite:///{tmp_path}/file/mlflow.db")
    with pytest.raises(SetupError, match="expected sqlite"):
        reach("mlruns")
    (tmp_path / "mlflow.db").write_text("this is no database" * 100)
    with pytest.raises(SetupError, match=r"cannot be used|refused"):
        Notebook(f"sqlite:///{tmp_path}/mlflow.db", "x")


def _fail(*_: object) -> None:
    raise RuntimeError("killed here")
