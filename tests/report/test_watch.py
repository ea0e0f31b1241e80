"""`kernel-scientist watch`: what it shows of real campaigns equals what the MLflow store holds of them."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.settings import PREFECT_API_URL, temporary_settings

from kernel_scientist.campaign import conclusion
from kernel_scientist.campaign.tally import Tally
from kernel_scientist.hardware import addresses
from kernel_scientist.problems import load
from kernel_scientist.records import environment
from kernel_scientist.records.campaign_result import CampaignResult
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.factors import factor
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.names import slug
from kernel_scientist.records.params import Budget, Params
from kernel_scientist.report import status, status_of
from kernel_scientist.report.screen import Screen
from kernel_scientist.report.status import Limit, Noise, Status
from kernel_scientist.sandbox import device_lock
from kernel_scientist.tracking import found, owner
from kernel_scientist.tracking.found import StoredCampaign
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests import results
from tests.campaign.test_campaign import SETTINGS, runs
from tests.conftest import ROOT, Cli, lab_environment
from tests.flows.service import until
from tests.trials import undescribed


def seen(cli: Cli, *arguments: str) -> Screen:
    done = cli("watch", "--once", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return Screen.model_validate_json(done.stdout)


def bare(campaign: str, folder: Path, **changes: object) -> Status:
    """The status of a campaign that has just begun, in this process."""
    none = Limit(used=0, limit=None)
    noise = Noise(in_use=None, now=None, load="", others_percent="")
    begun = Status(
        campaign=campaign,
        problem="p",
        language="cpp",
        target="cpu",
        folder=str(folder),
        process=owner.this_process(),
        state=status.RUNNING,
        written_s=time.time(),
        elapsed_s=0,
        kernels=0,
        planned=None,
        in_progress={},
        champion=None,
        result=None,
        per_minute=None,
        per_minute_now=None,
        minutes=none,
        usd=none,
        tokens=none,
        budget_kernels=none,
        seconds={},
        noise=noise,
        latest=(),
        roles=(),
    )
    return Status.model_validate({**begun.model_dump(), **changes})


@pytest.fixture
def cache(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the laboratory's own: others' campaigns are not in it."""
    folder = lab / "own-cache"
    monkeypatch.setenv("KERNEL_SCIENTIST_CACHE", str(folder))
    return folder


def test_a_resumed_campaign_s_budget_is_the_one_in_force(lab: Path, cli_here: Cli) -> None:
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    params = Params(problem="identity", budget=Budget(kernels=12)).model_dump(by_alias=True)
    run = store.start("identity-cpu-20260101-000000-abcd", params, load(ROOT / "problems" / "identity"))
    assert seen(cli_here, run.campaign).status.budget_kernels.limit == 12
    params["budget"]["kernels"] = 40
    store.with_params(run, params)
    assert seen(cli_here, run.campaign).status.budget_kernels.limit == 40


def test_the_screen_is_what_the_store_holds(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    wrong = "def custom_kernel(d):\n    return d[1].zero_()\n"
    (lab / "problems/identity/seeds/cpp_wrong.py").write_text(wrong)
    done = cli_here("optimize", "--json", *SETTINGS, "--set", "search.generations=1", PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    parent, children, store = runs(lab)
    live = seen(cli_here).status
    assert (live.campaign, live.state, live.folder) == (result["campaign"], "finished", str(lab))
    assert live.kernels == len(children) == result["kernels"] and not live.in_progress
    assert live.champion and live.champion.kernel == parent.tags["champion"] == result["champion"]
    measured = [run.data.metrics for run in children if run.data.tags["kernel"] == live.champion.kernel]
    in_final = parent.metrics.get(f"final_speedup.{live.champion.kernel}")
    own = in_final if live.champion.measured_in == "the final" else measured[0].get("speedup")
    assert own is None or live.champion.speedup == pytest.approx(own, rel=0.05), "rounded as its interval allows"
    assert live.result and live.result.confirmed == result["confirmed"] and live.result.why == result["why"]
    assert live.result.status == result["status"]
    assert live.result.text == factor(result["speedup"], result["interval"])
    assert [one.kernel for one in live.latest] == sorted(run.data.tags["kernel"] for run in children)[-10:]
    for one in live.latest:
        (tags,) = (run.data.tags for run in children if run.data.tags["kernel"] == one.kernel)
        assert (one.verdict, one.reason) == (tags["verdict"], tags.get("reason", ""))
    assert {"incorrect", "ok"} <= {one.verdict for one in live.latest}
    assert live.seconds.keys() >= {"model", "compile", "check", "time", "waiting", "record"}
    assert live.minutes.limit == float(parent.params["budget.minutes"])
    assert undescribed(store, parent) == set()

    with temporary_settings({PREFECT_API_URL: prefect_api}), get_client(sync_client=True) as client:
        same_key = ArtifactFilter(key=ArtifactFilterKey(any_=["watch-identity-cpu"]))
        versions = client.read_artifacts(artifact_filter=same_key)  # other tests' campaigns have some, too
    assert any(f"campaign   {live.campaign}" in str(one.data) for one in versions)

    text = cli_here("watch", "--once").stdout
    assert f"champion   {live.champion.kernel} {live.champion.text}" in text and "models" not in text

    status.file(live.campaign).unlink()
    stored = seen(cli_here, live.campaign).status
    assert seen(cli_here).status.campaign == live.campaign and stored.folder == ""
    known = set(Status.model_fields) - {"folder", "written_s", "elapsed_s", "minutes", "planned", "why", "seconds"}
    known -= {"per_minute", "per_minute_now", "champion"}  # the store's last wall time is that of the last kernel
    assert stored.champion and stored.champion.since_s == pytest.approx(live.champion.since_s, rel=1e-5), "six digits"
    assert stored.champion.model_copy(update={"since_s": live.champion.since_s}) == live.champion
    assert stored.model_dump(include=known) == live.model_dump(include=known)
    assert stored.seconds.keys() == live.seconds.keys()


@pytest.mark.slow
def test_a_campaign_is_watched_from_another_terminal(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    """While the device is held by another process it waits, and says so; killed, it is seen to be gone."""
    with device_lock.device("cpu", 600, purpose="hold the device", campaign="test"):
        running = subprocess.Popen(
            [sys.executable, "-m", "kernel_scientist", "optimize", *SETTINGS],
            cwd=lab,
            env=lab_environment(lab, PREFECT_API_URL=prefect_api),
            stderr=subprocess.DEVNULL,
        )
        try:

            def waits() -> Screen | None:
                done = cli_here("watch", "--json")
                if done.returncode:
                    return None
                screen = Screen.model_validate_json(done.stdout)
                mine = [one for one in screen.devices if str(running.pid) in one.who and not one.holds]
                return screen if mine and screen.status.in_progress else None

            screen = until(waits, "it waits for the device")
            assert screen.status.state == "running"
            holders = [one for one in screen.devices if one.holds == "cpu"]
            assert f"hold the device of campaign test (process {os.getpid()} of " in holders[0].who
            assert any("time k0000" in one.who and screen.status.campaign in one.who for one in screen.devices)
        finally:
            running.send_signal(signal.SIGKILL)
            running.wait()
    assert seen(cli_here).status.state == "gone"
    assert "its process has ended without a word" in cli_here("watch", "--once").stdout


def test_the_running_campaign_of_this_folder_comes_first(lab: Path, cache: Path, cli_here: Cli) -> None:
    now = time.time()
    status.write(bare("ended", lab, state="finished", written_s=now + 100))
    status.write(bare("running", lab, written_s=now))
    status.write(bare("elsewhere", lab / "other", written_s=now + 200))
    (cache / "campaigns" / "broken.json").write_text("{")
    assert seen(cli_here).status.campaign == "running"
    assert seen(cli_here, "ended").status.state == "finished"
    status.write(bare("other", lab, state="finished", problem="softmax"))
    assert seen(cli_here, "--set", "problem=softmax").status.campaign == "other"
    done = cli_here("watch", "--set", "problem=rmsnorm")
    assert done.returncode == 2 and "there is no campaign of rmsnorm in this folder" in done.stderr


def test_a_terminal_is_refreshed_until_the_campaign_ends(lab: Path, cache: Path) -> None:
    status.write(bare("c-1", lab, kernels=12))
    terminal, theirs = pty.openpty()
    env = lab_environment(lab, KERNEL_SCIENTIST_CACHE=str(cache), TERM="xterm")
    command = [sys.executable, "-m", "kernel_scientist", "watch", "--every", "1"]
    with subprocess.Popen(command, cwd=lab, env=env, stdout=theirs) as process:
        os.close(theirs)
        text = ""
        try:
            while chunk := os.read(terminal, 4096):
                text += chunk.decode(errors="replace")
                if "nothing gained for 12 kernels" in text:
                    status.write(bare("c-1", lab, kernels=12, state="finished"))
        except OSError:  # the end of a terminal on Linux
            pass
    os.close(terminal)
    assert process.returncode == 0 and "c-1: p in cpp on cpu, finished" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there is no campaign in this folder or in its MLflow store"),
        (("never-was",), "there is no campaign never-was in this folder"),
        (("it's",), "there is no campaign it's in this folder"),
        (("../../x",), "there is no campaign ../../x in this folder"),
        (("",), "'[CAMPAIGN]' is empty"),
        (("--every", "0"), "0 is not in the range"),
    ],
)
def test_nothing_to_watch_is_a_sentence(
    arguments: tuple[str, ...], message: str, cli_here: Cli, cache: Path, lab: Path
) -> None:
    done = cli_here("watch", *arguments)
    assert done.returncode == 2 and done.stdout == "" and message in done.stderr
    assert done.stderr.count("\n") == 1


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["model", "build", "device", "tune", "record"]),
            st.floats(0, 1e4),
            st.floats(0, 1e4),
            st.dictionaries(st.sampled_from(["compile", "check", "time", "count"]), st.floats(0, 1e5)),
        )
    )
)
def test_all_time_is_told_once(work: list[tuple[str, float, float, dict[str, float]]]) -> None:
    tally = Tally()
    for stage, waited_s, worked_s, seconds in work:
        tally.worked(stage, waited_s, worked_s, Evaluation(verdict=Verdict.OK, seconds=seconds))
    tally.failed("writer", "openai/x: HTTP 429")
    counts = tally.metrics()
    assert counts.pop("llm.failed.writer") == 1 and min(counts.values(), default=0) >= 0
    total = sum(waited_s + worked_s for _, waited_s, worked_s, _ in work)
    assert sum(counts.values()) == pytest.approx(total, abs=0.1, rel=1e-6)
    assert Tally({**counts, "llm.failed.writer": 1, "best_speedup": 3}).metrics() == tally.metrics()


def stored(lab: Path, campaign: str, result: CampaignResult | None = None, **params: str) -> Status:
    """The status of a campaign of which only the store knows."""
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "an-experiment")
    run = store.start(campaign, {"language": "cpp", **params}, load(lab / "problems/identity"))
    if result:
        store.log_text(run, conclusion.RESULT, result.model_dump_json())
        assert status_of.of_store(found_by(store, campaign)).result is None, "it goes on: this is of an earlier session"
        store.finish(run, result.champion or "")
    return status_of.of_store(found_by(store, campaign))


def found_by(store: MlflowStore, campaign: str) -> StoredCampaign:
    known = found.find(store.uri, campaign)
    assert known is not None
    return known


@pytest.mark.parametrize("said", ["confirmed", "correct", "not confirmed"])
def test_the_result_is_what_the_confirmation_came_to(lab: Path, said: str) -> None:
    """A seed that stays champion is correct: there was nothing that it had to beat."""
    known = {"champion": "k00001", "status": said, "confirmed": said == "confirmed", "why": "so it is"}
    seen = stored(lab, f"identity-cpu-{said}", results.campaign(**known, speedup=2.0, interval=(1.9, 2.1)))
    assert seen.result and (seen.result.status, seen.result.confirmed) == (said, said == "confirmed")
    lines = [line for line in Screen.of(seen).shown() if isinstance(line, str)]
    assert any(line.startswith(f"{said:10} 2x [1.9, 2.1]: so it is") for line in lines)


@pytest.mark.parametrize(
    ("used", "left"), [(11, "1 kernel left (11 of 12 used)"), (12, "0 kernels left (12 of 12 used)")]
)
def test_what_is_left_is_said_in_the_right_number(lab: Path, used: int, left: str) -> None:
    shown = Screen.of(bare("c", lab, budget_kernels=Limit(used=used, limit=12))).shown()
    assert any(isinstance(line, str) and line.startswith("budget") and left in line for line in shown)


def test_kernels_at_work_are_named_where_they_count_as_used(lab: Path) -> None:
    busy = bare("c", lab, kernels=2, budget_kernels=Limit(used=4, limit=4), in_progress={"k3": "", "k4": ""})
    lines = [line for line in Screen.of(busy).shown() if isinstance(line, str)]
    assert any("0 kernels left (4 of 4 used, 2 of them at work)" in line for line in lines), lines


@pytest.mark.parametrize("problem", ["identity", "amd/fp8-mm"])
@pytest.mark.parametrize(
    ("given", "name"),
    [("auto", "cpu"), ("cpu", "cpu"), ("pool:my gpus", addresses.resolve("pool:my gpus", "cpp").name)],
)
def test_the_store_tells_a_target_as_the_running_campaign_does(lab: Path, problem: str, given: str, name: str) -> None:
    campaign = f"{slug(problem)}-{name}-20261127-101010-ab12"
    assert stored(lab, campaign, problem=problem, target=given).target == name


def test_a_campaign_with_a_quote_in_its_id_is_found(lab: Path) -> None:
    assert stored(lab, "it's-mine", problem="identity", target="cpu").campaign == "it's-mine"
    assert found.find(f"sqlite:///{lab}/mlruns/mlflow.db", 'it\'s "mine"') is None


def test_the_cache_is_the_laboratorys(lab: Path, cache: Path) -> None:
    assert status.file("c") == environment.cache_folder() / "campaigns" / "c.json" == cache / "campaigns" / "c.json"
