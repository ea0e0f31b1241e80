"""Which campaign is resumed: the folder's own; on a shared store never a colleague's, unless it is named."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.campaign import outlook, resuming
from kernel_scientist.hardware import addresses
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import load as load_problem
from kernel_scientist.records import environment, params
from kernel_scientist.records.errors import SetupError
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore
from kernel_scientist.tracking.subject import Subject
from tests.conftest import ROOT, Cli, without_progress
from tests.trials import trial

PROBLEM = load_problem(ROOT / "problems" / "identity")
ADA = "ada@rome:/home/ada/lab"
DEAD = "llm.writer={model: openai/x, api_base: 'http://127.0.0.1:9/v1', price: {input_usd: 0, output_usd: 0}}"


def begun(store: MlflowStore, lab: Path, end: str, status: str = "KILLED", *kernels: str) -> CampaignRun:
    """A campaign with these kernels."""
    settings = params.load(lab / "params.yaml", ["problem=identity"]).model_dump(by_alias=True)
    run = store.start(f"identity-cpu-20260101-000000-{end}", settings, PROBLEM)
    population = Population()
    for name in kernels:
        made = trial(name, 1.0)
        store.log(run, made, population, PROBLEM)
        population.add(made)
    if status != "RUNNING":
        store.finish(run, "", status)
    time.sleep(0.01)  # MLflow's start times are in milliseconds
    return run


def resumed(cli: Cli, *arguments: str, **extra: str) -> dict[str, Any]:
    done = cli("optimize", "--dry-run", "--json", "--set", "problem=identity", *arguments, **extra)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def shared(tmp_path: Path, empty_store: Path) -> str:
    (tmp_path / "shared").mkdir()
    shutil.copy(empty_store, tmp_path / "shared")
    return f"sqlite:///{tmp_path}/shared/mlflow.db"


def test_a_colleagues_campaign_is_resumed_only_by_its_name(
    lab: Path, cli_here: Cli, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    store, where = MlflowStore(shared, "identity-cpu"), {"MLFLOW_TRACKING_URI": shared}
    with monkeypatch.context() as patch:
        patch.setenv("KERNEL_SCIENTIST_OWNER", ADA)
        theirs = begun(store, lab, "aaaa", "KILLED", "k00001")
    plan = resumed(cli_here, "--resume", **where)
    told = resuming.nothing(params.Params(), PROBLEM, addresses.CPU, store)
    assert plan["resumes"] == told and "campaign" not in plan
    assert f"no campaign of {environment.owner()} to resume" in told and f"resume={theirs.campaign}" in told
    assert f"{theirs.campaign} of {ADA}, on host " in told and f":{lab}" in environment.owner()
    assert resumed(cli_here, "--campaign", theirs.campaign, **where)["campaign"] == theirs.campaign
    own = begun(store, lab, "bbbb", "KILLED", "k00001")
    with monkeypatch.context() as patch:
        patch.setenv("KERNEL_SCIENTIST_OWNER", ADA)
        begun(store, lab, "cccc")
    assert resumed(cli_here, "--resume", **where)["campaign"] == own.campaign


def test_a_folder_that_was_moved_resumes_its_own(lab: Path, cli_here: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_OWNER", ADA)
    run = begun(MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu"), lab, "aaaa", "KILLED", "k00001")
    monkeypatch.delenv("KERNEL_SCIENTIST_OWNER")
    assert resumed(cli_here, "--resume")["campaign"] == run.campaign


def test_a_campaign_that_runs_is_named_with_its_owner_and_the_way_to_another(
    lab: Path, cli_here: Cli, cli: Cli
) -> None:
    begun(MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu"), lab, "aaaa", "RUNNING")
    done = cli("optimize", "--resume", "--dry-run", "--set", "problem=identity")  # another process than the owner
    (error,) = without_progress(done.stderr)
    assert done.returncode == 2 and "is being run by process " in error and ", on host " in error
    assert "`--campaign ID`, for a deployment resume=ID" in error


@pytest.mark.parametrize("command", [("report",), ("optimize", "--dry-run", "--campaign")])
def test_a_campaign_of_another_problem_is_told_where_it_is(lab: Path, cli: Cli, command: tuple[str, ...]) -> None:
    run = begun(MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu"), lab, "aaaa", "KILLED", "k00001")
    done = cli(*command, run.campaign, "--set", "problem=softmax")
    (error,) = without_progress(done.stderr)
    assert done.returncode == 2, done.stderr
    where = f"campaign {run.campaign} is in MLflow experiment identity-cpu, not in softmax-cpu"
    assert f"{where}: add --set problem=identity" in error
    missing = error.partition(": add ")[2].split()
    assert cli(*command, run.campaign, *missing).returncode == 0


@pytest.mark.parametrize(("then", "now"), [("intended", "official"), ("official", "intended")])
def test_another_compat_is_named_with_both_values(lab: Path, cli: Cli, then: str, now: str) -> None:
    problem = load_problem(ROOT / "problems" / "identity", compat=then)
    settings = params.load(lab / "params.yaml", ["problem=identity", f"compat={then}"]).model_dump(by_alias=True)
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    store.finish(store.start("identity-cpu-20260101-000000-aaaa", settings, problem), "", "KILLED")
    done = cli("optimize", "--resume", "--dry-run", "--set", "problem=identity", "--set", f"compat={now}")
    (error,) = without_progress(done.stderr)
    assert done.returncode == 2 and f"this call has compat={now}, and campaign " in error
    assert f"was started with compat={then}, which cannot change: resume it with --set compat={then}" in error


def test_another_version_of_the_problem_is_named_with_both_digests(lab: Path, cli: Cli) -> None:
    begun(MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu"), lab, "aaaa")
    with (lab / "problems" / "identity" / "reference.py").open("a") as file:
        file.write("\n# changed\n")
    changed = load_problem(lab / "problems" / "identity").digest[:12]
    done = cli("optimize", "--resume", "--dry-run", "--set", "problem=identity")
    (error,) = without_progress(done.stderr)
    assert done.returncode == 2 and "another version of problem identity" in error
    assert f"was {PROBLEM.digest[:12]} and is {changed}" in error


def test_a_dead_model_refuses_a_resume_only_if_something_is_left_to_do(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    begun(MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu"), lab, "aaaa", "KILLED", "k00001", "k00002")

    def called(generations: int) -> params.Params:
        return params.load(None, ["problem=identity", DEAD, f"search.generations={generations}"])

    outlook.require(called(0), resume=True)
    for resume, generations in ((True, 2), (False, 0)):
        with pytest.raises(SetupError, match=r"llm\.writer: no server answers"):
            outlook.require(called(generations), resume)
    with pytest.raises(SetupError, match="no campaign 'nosuch'"):
        outlook.require(called(0), "nosuch")


def test_nothing_is_made_to_find_a_campaign_where_there_is_no_store(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    shutil.rmtree(lab / "mlruns")
    settings = params.load(None, ["problem=identity"])
    target = addresses.resolve(settings.target, settings.language)
    assert resuming.existing(settings, PROBLEM, target) is None
    assert "there is no MLflow store" in outlook.plan(settings, resume=True)["resumes"]
    with pytest.raises(SetupError, match="no campaign 'nosuch': there is no MLflow store"):
        outlook.plan(settings, resume="nosuch")
    assert not (lab / "mlruns").exists()


def test_campaigns_of_an_experiment_that_several_problems_share_are_told_apart(
    lab: Path, cli_here: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    store, shared = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "all"), ("--set", "tracking.experiment=all")
    named = {"identity": PROBLEM, "softmax": load_problem(ROOT / "problems" / "softmax")}

    def made(problem: str, language: str, end: str, is_tagged: bool = True) -> str:
        values = params.load(None, [f"problem={problem}", f"language={language}"]).model_dump(by_alias=True)
        subject = Subject(problem, language, "cpu") if is_tagged else None
        run = store.start(f"{problem}-cpu-20260101-000000-{end}", values, named[problem], subject=subject)
        store.log(run, trial("k00001", 1.0), Population(), named[problem])
        store.finish(run, "", "KILLED")
        time.sleep(0.01)  # MLflow's start times are in milliseconds
        return run.campaign

    old = made("softmax", "cpp", "aaaa", is_tagged=False)  # of an older version
    own = made("identity", "cpp", "bbbb")
    made("identity", "triton", "cccc")
    other = made("softmax", "triton", "dddd")
    assert resumed(cli_here, *shared, "--resume")["campaign"] == own
    plan = resumed(cli_here, *shared, "--resume", "--set", "problem=softmax")
    assert plan["campaign"] == old
    done = cli_here("report", *shared, "--set", "problem=identity", "--out", str(lab / "page.html"))
    assert done.returncode == 0 and own in (lab / "page.html").read_text(), done.stderr
    for command in (("report", other), ("optimize", "--dry-run", "--campaign", other), ("compare", own, other)):
        done = cli_here(*command, *shared, "--set", "problem=identity")
        error = without_progress(done.stderr)[-1]
        assert done.returncode == 2 and f"campaign {other} is of softmax on cpu, not of identity on cpu" in error
