"""A campaign whose kernels a command writes: recorded like any other, confined, resumed after a kill."""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from kernel_scientist.campaign import agent_command, preflight
from kernel_scientist.problems import find
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.params import ROLES, load
from kernel_scientist.sandbox import bubblewrap, guest, landlock
from kernel_scientist.scientist.llm import costs
from kernel_scientist.tracking.artifacts import TRANSCRIPT
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import Cli, dedent, lab_environment
from tests.sandbox.test_confine import ended, running
from tests.trials import undescribed

QUICK = (
    "problem=identity",
    "search.strategy=agent",
    "search.from=seeds",
    "llm.concurrency=1",
    "harness.warmup_calls=1",
)
QUICK += ("harness.stages=1", "harness.blocks=2", "validate.blocks=2", "tracking.register=false")
WAIT_S = 240


def settings(*more: str) -> list[str]:
    return [part for one in (*QUICK, *more) for part in ("--set", one)]


def agent(lab: Path, text: str) -> str:
    """The setting of an agent that is a Python program."""
    (file := lab.parent / "agent.py").write_text(f"import os, pathlib, sys\n{dedent(text)}")
    return f"search.agent={shlex.join([sys.executable, '-S', str(file)])} {{task}}"


def stored(lab: Path) -> tuple[MlflowStore, list[Trial]]:
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    run = store.latest()
    assert run is not None and undescribed(store, run) == set()
    return store, sorted(store.population(run), key=lambda trial: trial.kernel.name)


def printed(lab: Path) -> str:
    """What the commands of all kernels printed."""
    return "".join(file.read_text() for file in (lab / "mlruns").rglob(TRANSCRIPT))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("search.agent=no-such-program {task}",), "there is no program 'no-such-program' on PATH"),
        (('search.agent="sh -c \'unclosed"',), "search.agent is no command line: No closing quotation"),
        (("search.agent=' '",), "there is no program '' on PATH"),
        (("search.agent=sh", "search.agent_writes=[~/no-such-folder]"), "there is no ~/no-such-folder"),
        (("search.agent=sh", "search.strategy=tree"), "search.strategy=agent, and the strategy is tree"),
        (("search.agent=sh", "search.agent_minutes=0"), "search.agent_minutes"),
    ],
)
def test_a_command_that_cannot_be_run_is_one_sentence(cli_here: Cli, given: tuple[str, ...], sentence: str) -> None:
    done = cli_here("optimize", *settings(*given))
    assert done.returncode == 2 and sentence in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_dry_run_says_what_would_be_run(cli_here: Cli) -> None:
    done = cli_here("optimize", "--dry-run", *settings("search.agent=sh -c true", "search.agent_minutes=3"))
    assert done.returncode == 0 and "sh -c true" in done.stdout and "at most 3 min a run" in done.stdout
    assert agent_command.UNPRICED in done.stdout and "writer" not in done.stdout


def test_a_system_without_a_sandbox_is_refused_unless_the_harness_permits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "bubblewrap_works", lambda: False)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    given = ("problem=identity", "search.strategy=agent", "search.agent=sh")
    with pytest.raises(SetupError, match="neither bubblewrap nor Landlock"):
        preflight.campaign(load(None, given))
    agent_command.require(load(None, (*given, "harness.sandbox=basic")))


def test_roles_that_a_campaign_by_a_command_has_not_need_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    params = load(
        None, ("problem=identity", "search.strategy=agent", "search.agent=sh", "llm.writer.model=openai/gpt-4o")
    )
    preflight.models(params)
    with pytest.raises(SetupError, match=r"llm\.writer"):
        preflight.models(load(None, ("problem=identity", "llm.writer.model=openai/gpt-4o")))
    assert costs.campaign_usd(params, find("identity"), 1, agent_command.roles(params)) == 0
    assert costs.campaign_usd(params, find("identity"), 1, ROLES) > 0


def test_its_folder_cannot_be_in_a_hidden_one(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    (scratch := lab / "data" / "tmp").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr(guest, "kind", lambda: "bubblewrap")
    with pytest.raises(SetupError, match="set TMPDIR to another"):
        agent_command.require(load(None, ("problem=identity", "search.strategy=agent", "search.agent=sh")))


def test_the_repository_that_a_laboratory_lies_in_is_hidden(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    subprocess.run(["git", "init", "-q", str(lab.parent)], check=True)
    params = load(None, ("problem=identity", "search.strategy=agent", "search.agent=sh"))
    assert str(lab.parent.resolve() / ".git") in agent_command.of(params, find("identity")).hidden


def test_held_out_cases_and_records_are_hidden(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    params = load(None, ("problem=identity", "search.strategy=agent", "search.agent=sh"))
    hidden = [Path(path) for path in agent_command.of(params, find("identity")).hidden]
    for secret in ("problems/identity/lab.yml", "mlruns/mlflow.db"):
        assert any((lab / secret).resolve().is_relative_to(path) for path in hidden), secret
    assert not any(a != b and a.is_relative_to(b) for a in hidden for b in hidden)


BY_NAME = """
    name, kernel = pathlib.Path.cwd().name[:6], pathlib.Path("kernel.py")
    repairing = "Your kernel failed" in pathlib.Path("TASK.md").read_text()
    text, report = kernel.read_text(), pathlib.Path("report.md")
    print("I am", name, "and repair" if repairing else "and write")
    if name == "k00003":
        kernel.write_text(text.replace('"VEC": 16', '"VEC": 32'))
        report.write_text("Wider vectors need fewer instructions\\nExpected gain: 1 to 5 %")
    if name == "k00005":
        kernel.write_text(text.replace("int threads =", "int threads") if not repairing else "garbage \\0")
    if name == "k00006":
        kernel.write_text(text.replace('"CHUNK": 16384', '"CHUNK": 65536'))
        sys.exit(1)
"""


@pytest.mark.slow
def test_a_campaign_by_a_command_is_recorded_like_any_other(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    (lab / "problems/identity/seeds/cpp_naive.py").unlink()
    (lab / "problems/identity/seeds/cpp_other.py").write_text("def custom_kernel(d):\n    return d[1].copy_(d[0])\n")
    given = settings(agent(lab, BY_NAME), "search.generations=2", "search.experiments=2", "repair.rounds=1")
    done = cli_here("optimize", *given, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    assert agent_command.UNPRICED in done.stderr
    store, trials = stored(lab)
    assert [trial.kernel.name for trial in trials] == [f"k{number:05d}" for number in range(1, 7)]
    first, unchanged, broken, last = (trial for trial in trials[2:])
    assert first.kernel.base in ("k00001", "k00002") and first.kernel.experiment is not None
    assert first.kernel.title == "own idea 1.1: Wider vectors need fewer instructions"
    assert first.kernel.experiment.uplift == (1, 5) and "I am k00003 and write\n[status 0" in printed(lab)
    assert [*first.kernel.authors] == ["writer"] and "agent.py" in first.kernel.authors["writer"].model
    assert unchanged.evaluation.verdict == "declined" and "left the base unchanged" in unchanged.evaluation.reason
    assert broken.evaluation.verdict == "compile_error" and len(broken.kernel.attempts) == 1
    assert broken.kernel.source == "garbage \ufffd" and "and repair\n[status 0" in printed(lab)
    assert "its command ended with status 1" in last.kernel.report
    run = store.latest()
    assert run is not None and run.params["search.agent"].endswith("{task}")
    page = (lab / f"reports/{run.campaign}.html").read_text()
    assert agent_command.UNPRICED in page.replace("&#39;", "'")


@pytest.mark.slow
def test_a_killed_campaign_leaves_nothing_running_and_goes_on(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    seconds = f"{700000 + os.getpid()}.5"
    given = settings("search.generations=1", "search.experiments=1")
    hangs = agent(lab, f"import subprocess\nsubprocess.run(['sleep', '{seconds}'])")
    command = [sys.executable, "-m", "kernel_scientist", "optimize", *given, "--set", hangs]
    environment = lab_environment(lab, PREFECT_API_URL=prefect_api)
    killed = subprocess.Popen(command, cwd=lab, env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + WAIT_S
    while not running(f"sleep\0{seconds}") and time.monotonic() < deadline and killed.poll() is None:
        time.sleep(0.1)
    assert running(f"sleep\0{seconds}")
    killed.kill()
    killed.wait()
    while not ended(seconds) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert ended(seconds)
    goes_on = agent(lab, BY_NAME)
    done = cli_here("optimize", "--resume", *given, "--set", goes_on, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0 and "goes on" in done.stderr, done.stderr
    trials = stored(lab)[1]
    assert trials[-1].kernel.name == "k00003" and "I am k00003 and write" in printed(lab)
