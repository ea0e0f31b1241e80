"""The MLflow store: what is written is read back, once."""

import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.campaign.recorder import Recorder
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import load
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import CompileReport, Evaluation, Trial
from kernel_scientist.records.kernel import Experiment, Kernel, LlmCall, Verdict
from kernel_scientist.records.params import Harness, Params
from kernel_scientist.scientist.llm.response_cache import LlmRequest, Reply, ResponseCache
from kernel_scientist.scientist.prompts import Message
from kernel_scientist.tracking import campaign_params, flow_links, local_store, snapshots
from kernel_scientist.tracking.access import require_reachable
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.experiment import MlflowExperiment
from kernel_scientist.tracking.failures import StoreError
from kernel_scientist.tracking.mlflow_store import MlflowStore
from kernel_scientist.tracking.subject import Subject
from tests.conftest import ROOT
from tests.trials import trial

IDENTITY = Subject("identity", "cpp", "cpu")
PROBLEM = load(ROOT / "problems" / "identity")
EXPERIMENT = Experiment(
    title="unroll: 1 -> 2", description="Faster.", rubric=("set it",), uplift=(-5, 12), innovation=15
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> MlflowStore:
    return MlflowStore(f"sqlite:///{tmp_path_factory.mktemp('mlruns')}/mlflow.db", "identity-cpu")


@pytest.fixture
def campaign(store: MlflowStore, request: pytest.FixtureRequest) -> CampaignRun:
    return store.start(request.node.name, {"search": {"generations": 3}, "problem": "identity"}, PROBLEM)


def failed(name: str) -> Trial:
    kernel = Kernel(
        name=name, language="cpp", source=f"bad {name}", base="k00001", reference="k00001", experiment=EXPERIMENT
    )
    report = CompileReport(ok=False, compiler="g++", log="kernel.cpp:1: error: no\n")
    evaluation = Evaluation(verdict=Verdict.COMPILE_ERROR, reason="error: no", compile=report, seconds={"compile": 0.5})
    return Trial(kernel=kernel, evaluation=evaluation)


def log(store: MlflowStore, campaign: CampaignRun, trials: list[Trial]) -> Population:
    population, replies = Population(), ResponseCache(Path(tempfile.mkdtemp()))
    recorder = Recorder(store, campaign, PROBLEM, replies, population)
    for one in trials:
        recorder.record([one], lambda: 1.0)
    recorder.flush()
    return population


def test_a_population_is_read_back_as_it_was_written(store: MlflowStore, campaign: CampaignRun) -> None:
    child = trial("k00002", 2.0, {"k00001": (1.8, 2.2)}, base="k00001")
    child = child.model_copy(
        update={"kernel": child.kernel.model_copy(update={"experiment": EXPERIMENT, "generation": 1})}
    )
    written = log(store, campaign, [trial("k00001", 1.0), child, failed("k00003")])
    latest = store.latest(campaign.campaign)
    assert latest is not None and latest.run_id == campaign.run_id and latest.params["search.generations"] == "3"
    assert tuple(store.population(latest)) == tuple(written)


def test_params_are_what_somebody_set_and_nothing_is_lost(store: MlflowStore) -> None:
    params = Params(problem="identity", harness=Harness(blocks=9)).model_dump(by_alias=True)
    run = store.start("identity-cpu-20260102-000000-abcd", params, PROBLEM)
    shown = store.client.get_run(run.run_id).data.params
    assert shown.keys() == {*campaign_params.ALWAYS, "harness.blocks"} and shown["harness.blocks"] == "9"
    first = store.latest(run.campaign)
    assert first is not None and first.params == run.params == campaign_params.texts(params) and len(run.params) > 100
    params["budget"]["kernels"] = 40
    store.with_params(run, params)
    resumed = store.latest(run.campaign)
    assert resumed is not None and resumed.params == run.params | {"budget.kernels": "40"}
    assert store.client.get_run(run.run_id).data.params == shown, "MLflow's params do not change"


@given(st.dictionaries(st.sampled_from([*campaign_params.ALWAYS, "harness.blocks", "gone.since"]), st.text()))
def test_parameters_survive_the_store(values: dict[str, str]) -> None:
    kept = campaign_params.compared(values)
    assert campaign_params.in_force(campaign_params.dump(values), kept) == values
    assert campaign_params.in_force(None, values) == values, "an older campaign has them all as MLflow's params"


def test_runs_hold_what_a_user_compares(store: MlflowStore, campaign: CampaignRun) -> None:
    child = trial("k00002", 2.0, {"k00001": (1.8, 2.2)}, base="k00001")
    child = child.model_copy(update={"kernel": child.kernel.model_copy(update={"experiment": EXPERIMENT})})
    log(store, campaign, [trial("k00001", 1.0), child, failed("k00003")])
    runs = {r.data.tags["kernel"]: r for r in store._children(campaign.run_id)}
    good, bad = runs["k00002"], runs["k00003"]
    assert good.data.metrics["speedup"] == 2.0 and good.data.metrics["geomean_us"] == pytest.approx(50)
    assert good.data.metrics["reference_geomean_us"] == pytest.approx(100) == good.data.metrics["reference_us/c"]
    assert good.data.metrics["measured_uplift"] == pytest.approx(100) and good.data.metrics["time_us/c"] == 50.0
    assert good.data.params["experiment"] == "unroll" and good.data.params["predicted_uplift_max"] == "12.0"
    assert good.data.params["base"] == "k00001" and good.data.tags["verdict"] == "ok"
    whole = store.client.get_run(campaign.run_id)
    assert whole.inputs.dataset_inputs[0].dataset.name == "identity"
    files = {f.path for f in store.client.list_artifacts(good.info.run_id)}
    assert files == {"source", "base.diff", "evaluation.json", "experiment.json"}
    assert bad.data.tags["verdict"] == "compile_error" and bad.data.tags["reason"] == "error: no"
    assert not {"speedup", "geomean_us"} & set(bad.data.metrics) and bad.data.metrics["seconds/compile"] == 0.5
    assert "compiler.txt" in {f.path for f in store.client.list_artifacts(bad.info.run_id)}
    assert all(math.isfinite(v) for r in runs.values() for v in r.data.metrics.values())
    history = store.client.get_metric_history(campaign.run_id, "best_speedup")
    assert [(m.step, m.value) for m in history] == [(1, 1.0), (2, 2.0), (3, 2.0)]


def test_writing_a_kernel_twice_makes_one_run(store: MlflowStore, campaign: CampaignRun) -> None:
    one = trial("k00001", 1.0)
    assert store.log(campaign, one, Population(), PROBLEM) == store.log(campaign, one, Population(), PROBLEM)
    assert len(store._children(campaign.run_id)) == 1


def test_a_run_that_was_being_written_is_removed_on_resume(store: MlflowStore, campaign: CampaignRun) -> None:
    log(store, campaign, [trial("k00001", 1.0)])
    torn = trial("k00002", 2.0)
    real = store.client.set_terminated
    store.client.set_terminated = _fail
    with pytest.raises(RuntimeError, match="killed here"):
        store.log(campaign, torn, Population(), PROBLEM)
    store.client.set_terminated = real
    assert len(store._children(campaign.run_id)) == 2
    assert [t.kernel.name for t in store.population(campaign)] == ["k00001"]
    assert store.reopen(campaign) == 1
    assert len(store._children(campaign.run_id)) == 1
    store.log(campaign, torn, Population(), PROBLEM)
    assert [t.kernel.name for t in store.population(campaign)] == ["k00001", "k00002"]


def test_a_suite_resumes_its_own_campaigns_only(store: MlflowStore) -> None:
    of_suite = {"language": "cpp", "tracking": {"suite": "one-12ab"}}
    assert store.recorded(None, IDENTITY, "one-12ab") is None
    mine = store.start("mine", of_suite, PROBLEM)
    store.start("other", {"language": "cpp", "tracking": {"suite": "two-34cd"}}, PROBLEM)
    store.start("plain", {"language": "cpp", "tracking": {"suite": ""}}, PROBLEM)
    found = store.recorded(None, IDENTITY, "one-12ab")
    assert found is not None and found.run_id == mine.run_id
    latest = store.recorded(None, IDENTITY)
    assert latest is not None and latest.campaign == "plain"


def test_a_campaign_that_another_process_runs_is_not_resumed(store: MlflowStore) -> None:
    campaign = store.start("shared", {"language": "cpp"}, PROBLEM)
    assert store.recorded("shared", IDENTITY), "this process runs it"
    program = "from kernel_scientist.tracking import owner; print(owner.this_process(), flush=True); input()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin and other.stdout
        store.client.set_tag(campaign.run_id, "owner", other.stdout.readline().strip())
        with pytest.raises(SetupError, match=f"is being run by process {other.pid}: wait"):
            store.recorded("shared", IDENTITY)
        other.stdin.write("\n")
        other.stdin.flush()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert store.recorded("shared", IDENTITY), "a process that waits to be reaped has ended"


def test_a_clock_that_jumps_hides_no_kernel_from_a_resume(
    store: MlflowStore, campaign: CampaignRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["k00001", "k00002", "k00003"]
    population = log(store, campaign, [trial(name, 1.0) for name in names[:2]])
    store.log_snapshot(campaign, population, names[:2])
    hour_ago = time.time() - 3600
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: hour_ago)
        store.log(campaign, trial("k00003", 1.0), population, PROBLEM)
    (late,) = (run for run in store._children(campaign.run_id) if run.data.tags["kernel"] == "k00003")
    assert late.info.start_time < hour_ago * 1000 + 60_000
    assert [one.kernel.name for one in store.population(campaign)] == names


def test_a_second_resume_finds_kernels_that_were_recorded_long_before_the_first_snapshot(
    store: MlflowStore, campaign: CampaignRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "KERNELS", 2)
    child, grandchild = trial("k00001", 1.0, base="k00003"), trial("k00002", 1.0, base="k00001")
    order, population, replies = [trial("k00003", 1.0), child, grandchild], Population(), ResponseCache(tmp_path)
    for one in order:  # by a version without snapshots
        run_id = store.log(campaign, one, population, PROBLEM)
        population.add(one)
        store.client.set_terminated(run_id, end_time=1)
    resumed, loose = store.read_population(campaign)
    assert loose == ["k00003", "k00001", "k00002"], "in the order in which they were recorded"
    assert {entry.root for entry in resumed.entries()} == {"k00003"}
    Recorder(store, campaign, PROBLEM, replies, resumed, loose).record([], lambda: 1.0)
    again, loose = store.read_population(campaign)
    assert loose == [] and tuple(again) == tuple(resumed)


def test_threads_write_at_the_same_time(store: MlflowStore, campaign: CampaignRun) -> None:
    trials = [trial(f"k{n:05d}", 1.0 + n) for n in range(1, 13)]
    threads = [threading.Thread(target=store.log, args=(campaign, t, Population(), PROBLEM)) for t in trials]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tuple(store.population(campaign)) == tuple(trials)


def test_a_champion_is_registered_with_its_source(
    store: MlflowStore, campaign: CampaignRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    trials = [trial("k00001", 1.0), trial("k00002", 2.0), trial("k00003", 1.5)]
    log(store, campaign, trials)
    for one, is_standing in zip(trials, (True, True, False), strict=True):
        store.register(campaign, one.kernel, "identity-cpp-cpu", is_standing)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.uri)  # which MLflow exports, and later tests would obey
    mlflow.set_tracking_uri(store.uri)
    for version, one in (("@champion", trials[1]), ("/1", trials[0]), ("/3", trials[2])):
        folder = mlflow.artifacts.download_artifacts(f"models:/identity-cpp-cpu{version}", dst_path=str(tmp_path))
        assert (Path(folder) / "kernel.py").read_text() == one.kernel.source


def test_a_champion_is_loaded_as_its_card_says(
    store: MlflowStore, campaign: CampaignRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    champion = trial("k00001", 2.0)
    source = "def custom_kernel(data):\n    x, out = data\n    return [2 * value for value in x]\n"
    champion = champion.model_copy(update={"kernel": champion.kernel.model_copy(update={"source": source})})
    log(store, campaign, [champion])
    facts = {"confirmation": "confirmed: faster", "speedup over the reference": "2x [1.9, 2.1]", "hardware": "a CPU"}
    assert store.next_version("doubled") == 1
    version = store.register(campaign, champion.kernel, "doubled", True, facts)
    assert store.next_version("doubled") == 2
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.uri)  # which MLflow exports, and later tests would obey
    mlflow.set_tracking_uri(store.uri)
    card = store.client.get_registered_model("doubled").description
    assert champion.kernel.digest in card and all(f"| {name} | {text} |" in card for name, text in facts.items())
    tags = store.client.get_model_version("doubled", version).tags
    assert tags["speedup_over_the_reference"] == "2x [1.9, 2.1]" and tags["hardware"] == "a CPU"
    snippets = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    assert [len(snippet.splitlines()) for snippet in snippets] == [3, 3]
    for snippet in snippets:
        names = {"data": ([1, 2], None)}
        exec(snippet, names)
        assert names["output"] == [2, 4]


def test_the_card_of_a_version_loads_it_without_an_alias(
    store: MlflowStore, campaign: CampaignRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A standing champion of an earlier store may keep the alias from every version of this one."""
    import mlflow

    champions = [trial("k00001", 2.0), trial("k00002", 3.0)]
    log(store, campaign, champions)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.uri)  # which MLflow exports, and later tests would obey
    mlflow.set_tracking_uri(store.uri)
    for one, is_standing in zip(champions, (False, True), strict=True):
        version = store.register(campaign, one.kernel, "identity-cpp-cpu", is_standing)
        assert store.register(campaign, one.kernel, "identity-cpp-cpu", is_standing) == version
    for number, one in enumerate(champions, 1):
        card = store.client.get_model_version("identity-cpp-cpu", str(number)).description
        addresses = re.findall(r'"(models:[^"]*)"', card)
        assert addresses == [f"models:/identity-cpp-cpu/{number}"] * 2
        folder = Path(mlflow.artifacts.download_artifacts(addresses[0]))
        assert (folder / "kernel.py").read_text() == one.kernel.source and (folder / "README.md").read_text() == card


def test_a_run_tells_its_story(store: MlflowStore, campaign: CampaignRun) -> None:
    linked = store.linked(campaign, "http://127.0.0.1:4200/runs/flow-run/1")
    child = trial("k00002", 2.0, {"k00001": (1.8, 2.2)}, base="k00001")
    child = child.model_copy(update={"kernel": child.kernel.model_copy(update={"experiment": EXPERIMENT})})
    population, began_s = Population(), time.time() - 3600
    for one in (trial("k00001", 1.0), child):
        store.log(linked, one, population, PROBLEM, began_s=began_s)
        population.add(one)
    store.finish(linked, "k00001")
    store.finish(linked, "k00002")
    runs = {r.data.tags["kernel"]: r for r in store._children(campaign.run_id)}
    base, made = runs["k00001"], runs["k00002"]
    assert made.info.end_time - made.info.start_time >= 3_600_000, "the kernel's life, not that of the logging"
    note = made.data.tags["mlflow.note.content"]
    assert "**Hypothesis.** Faster. Predicted uplift: -5 to +12 %." in note and "2x [1.8, 2.2] the reference's" in note
    assert "+100 % [+80, +120] over k00001, in one run." in note
    assert f"[k00001](#/experiments/{store.experiment_id}/runs/{base.info.run_id})" in note
    assert "Faster than k00001 by the test" in note
    assert f"(#/experiments/{store.experiment_id}/runs/{campaign.run_id})" in note, "a link that no port breaks"
    assert "reason" not in made.data.tags and made.data.tags["champion"] == "yes" and "champion" not in base.data.tags
    assert list(made.data.metrics)[:2] == ["speedup", "geomean_us"], "MLflow's pages show metrics in this order"
    resumed = MlflowStore(store.uri, "identity-cpu")
    assert tuple(resumed.population(campaign)) == tuple(population)


def test_the_link_to_prefect_follows_the_server_that_has_the_run(store: MlflowStore) -> None:
    ours, theirs = (store.start(name, {"language": "cpp"}, PROBLEM) for name in ("ours", "theirs"))
    for campaign, at in ((ours, "http://127.0.0.1:4200/runs/flow-run/1"), (theirs, "http://team/runs/flow-run/2")):
        store.linked(campaign, at)
    flow_links.follow(store.client, "http://127.0.0.1:4422", lambda _: {"1"})

    def tags(campaign: CampaignRun) -> dict[str, str]:
        return store.client.get_run(campaign.run_id).data.tags

    assert tags(ours)["prefect_run"] == "http://127.0.0.1:4422/runs/flow-run/1"
    assert "[Prefect run](http://127.0.0.1:4422/runs/flow-run/1)" in tags(ours)["mlflow.note.content"]
    assert (
        f"(#/experiments/{store.experiment_id}/runs/{ours.run_id}/artifacts/report.html)"
        in tags(ours)["mlflow.note.content"]
    )
    assert tags(theirs)["prefect_run"] == "http://team/runs/flow-run/2"


def test_a_trace_belongs_to_the_kernel_that_it_made(store: MlflowStore, campaign: CampaignRun, tmp_path: Path) -> None:
    request = LlmRequest(model="m", parameters={}, messages=(Message(role="user", content="why?"),))
    replies, population = ResponseCache(tmp_path), Population()
    recorder = Recorder(store, campaign, PROBLEM, replies, population)
    keys = {"plan": "design/1/0", "dropped": "write/k00001-cc/0", "code": "write/k00001-aa/0"}
    for text, key in {**keys, "waits": "write/k00002-bb/0"}.items():
        replies.add(Reply(request=request, text=text, role="writer", call_key=key, campaign=campaign.campaign))
    tokens = {"input_tokens": 1, "output_tokens": 1, "usd": 0.0, "seconds": 1.0}
    call = LlmCall(role="writer", call_key=keys["code"], model="m", key=request.key, prompt="", **tokens)
    made = trial("k00001", 1.0)
    made = made.model_copy(update={"kernel": made.kernel.model_copy(update={"llm_calls": (call,)})})

    def traced(run_id: str) -> list[str]:
        where = f"request_metadata.`mlflow.sourceRun` = '{run_id}'"
        found = store.client.search_traces(locations=[store.experiment_id], filter_string=where)
        return sorted(trace.data.spans[0].outputs["content"] for trace in found)

    recorder.record([made], lambda: 1.0)
    recorder.flush()
    kernel = store.run_id(campaign, "k00001")
    assert kernel and traced(kernel) == ["code"] and traced(campaign.run_id) == ["dropped", "plan"]
    recorder.flush(last=True)
    assert traced(campaign.run_id) == ["dropped", "plan", "waits"]


def test_a_trace_that_a_kill_left_without_its_span_is_written_again(
    store: MlflowStore, campaign: CampaignRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = LlmRequest(model="m", parameters={}, messages=(Message(role="user", content="why?"),))
    answers = [
        Reply(request=request, text=text, role="writer", call_key="write/k00001/0", campaign=campaign.campaign, time=n)
        for n, text in enumerate(("because", "so"), 1)
    ]

    def replies() -> list[str]:
        traces = store.client.search_traces(
            locations=[store.experiment_id],
            filter_string=f"request_metadata.`mlflow.sourceRun` = '{campaign.run_id}'",
        )
        return sorted(trace.data.spans[0].outputs["content"] for trace in traces)

    killed = MlflowStore(store.uri, "identity-cpu")
    with monkeypatch.context() as m:
        m.setattr(killed._tracing, "log_spans", _fail)
        with pytest.raises(RuntimeError, match="killed here"):
            killed.log_traces(campaign, [(reply, "") for reply in answers])
    assert replies() == []
    for _ in range(2):
        MlflowStore(store.uri, "identity-cpu").log_traces(campaign, [(reply, "") for reply in answers])
        assert replies() == ["because", "so"]


def test_a_store_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="cannot write"):
        local_store.require_writable(f"sqlite:///{tmp_path}/file/mlflow.db")
    with pytest.raises(SetupError, match="expected sqlite"):
        require_reachable("mlruns")
    (tmp_path / "mlflow.db").write_text("this is no database" * 100)
    with pytest.raises(SetupError, match=r"cannot be used|refused"):
        MlflowStore(f"sqlite:///{tmp_path}/mlflow.db", "x")


def _fail(*_: object, **__: object) -> None:
    raise RuntimeError("killed here")


def test_the_error_of_a_download_is_told_while_another_thread_still_writes_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Remote(MlflowExperiment):
        def __init__(self) -> None:
            self._local, self.ended = False, threading.Event()

        def _download(self, run_id: str, name: str, folder: str | None = None) -> Path:
            def write() -> None:
                while not self.ended.is_set():
                    place = Path(folder or "") / "snapshots"
                    place.mkdir(parents=True, exist_ok=True)
                    for number in range(20):
                        (place / str(number)).write_text("")

            self.writer = threading.Thread(target=write)
            self.writer.start()
            time.sleep(0.05)
            raise StoreError("the MLflow store cannot be used")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    remote = Remote()
    try:
        with pytest.raises(StoreError), remote._downloaded("run", "snapshots"):
            pass
    finally:
        remote.ended.set()
        remote.writer.join()
