"""A campaign that ended early says why, and the command that goes on: in the store, the report and `watch`."""

import itertools
import json
import re
import shlex
import signal
import threading
from functools import partial
from pathlib import Path

import pytest

from kernel_scientist.campaign import ending, stopping
from kernel_scientist.records import params
from kernel_scientist.records.errors import StoppedError
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.campaign.test_resuming import PROBLEM, begun
from tests.conftest import Cli

MONEY = "the next call could raise the cost to 0.6 USD, above budget.usd 0.5"


def ended(lab: Path, why: str, *overrides: str) -> CampaignRun:
    """A recorded campaign that ended for this reason after 90 s."""
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    settings = params.load(lab / "params.yaml", ["problem=identity", *overrides]).model_dump(by_alias=True)
    run = ending.noted(store.start("identity-cpu-20260101-000000-aaaa", settings, PROBLEM), why, 90.0)
    ending.record(store, run)
    store.finish(run, "", "KILLED")
    return run


def test_report_and_watch_say_why_and_how_to_go_on(lab: Path, cli_here: Cli) -> None:
    run = ended(lab, "Ctrl-C stopped it", "search.generations=7")
    command = f"kernel-scientist optimize --campaign {run.campaign} --set problem=identity --set search.generations=7"
    page = lab / "page.html"
    done = cli_here("report", "--set", "problem=identity", "--out", str(page))
    assert f"it ended after 1.5 min: Ctrl-C stopped it; `{command}` goes on" in done.stdout
    assert "Ctrl-C stopped it" in page.read_text() and command in page.read_text()
    seen = json.loads(cli_here("watch", "--json", run.campaign).stdout)["status"]
    assert (seen["why"], seen["resume"], seen["elapsed_s"]) == ("Ctrl-C stopped it", command, 90)
    assert f"`{command}` goes on" in cli_here("watch", "--once", run.campaign).stdout


def test_a_stop_names_its_own_campaign_and_none_before_there_is_one(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    run = ended(lab, "Ctrl-C stopped it")
    with stopping.interruptible():
        assert stopping.sentence() == "stopped before the campaign began: nothing was recorded"
        stopping.began(f"continue with `{ending.command(run)}`")
        command = f"kernel-scientist optimize --campaign {run.campaign} --set problem=identity"
        assert f"continue with `{command}" in stopping.sentence()
    with stopping.interruptible():
        assert "nothing was recorded" in stopping.sentence(), "this is another campaign"


@pytest.mark.usefixtures("hears_hangups")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_before_and_only_asks_once_there_is_a_campaign(
    number: int, request: pytest.FixtureRequest
) -> None:
    for handled in stopping.REASONS:
        request.addfinalizer(partial(signal.signal, handled, signal.getsignal(handled)))
    closed = threading.Event()
    with stopping.interruptible(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    with stopping.interruptible(), pytest.raises(StoppedError), stopping.stoppable(closed.set) as check:
        check()
        signal.raise_signal(number)
        if number == signal.SIGHUP:
            signal.raise_signal(number)  # the kernel sends one, and the shell another
        assert closed.wait(10)
        check()
    assert stopping.why() == stopping.REASONS[signal.Signals(number)]
    with stopping.stoppable(closed.set):  # the next campaign of this process was not stopped
        pass


def test_nohup_keeps_a_campaign_from_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping.interruptible(), stopping.stoppable(lambda: None) as check:
            signal.raise_signal(signal.SIGHUP)
            check()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_campaign_that_did_all_needs_no_command(lab: Path, cli_here: Cli) -> None:
    ended(lab, "all generations are done (search.generations is 4)")
    done = cli_here("report", "--set", "problem=identity", "--out", str(lab / "page.html"))
    assert "it ended after 1.5 min: all generations are done" in done.stdout and "goes on" not in done.stdout


def test_a_process_that_ended_without_a_word_is_told(lab: Path, cli: Cli) -> None:
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    run = begun(store, lab, "aaaa", "RUNNING")
    host, pid, _ = run.tags["owner"].split()
    store.note(run, "owner", f"{host} {pid} earlier")
    done = cli("report", "--set", "problem=identity", "--out", str(lab / "page.html"))
    assert "its process ended without a word; `kernel-scientist optimize --campaign" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("why", "more"),
    [
        ("the budget of minutes is spent (budget.minutes is 30, 31.0 are gone)", "budget.minutes=60"),
        ("the budget of kernels is spent (budget.kernels)", "budget.kernels=20"),
        (MONEY, "budget.usd=1"),
    ],
)
def test_a_spent_budget_is_doubled_in_the_command(
    lab: Path, monkeypatch: pytest.MonkeyPatch, why: str, more: str
) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    run = ended(lab, why, "budget.minutes=30", "budget.kernels=10", "budget.usd=0.5")
    assert more in shlex.split(ending.of(run).resume)


def test_the_command_names_a_problem_that_params_yaml_named_for_this_campaign_alone(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    run, file = ended(lab, "Ctrl-C stopped it"), lab / "params.yaml"
    file.write_text(re.sub(r"^problem: \S+", "problem: identity", file.read_text(), flags=re.MULTILINE))
    assert "problem=identity" in shlex.split(ending.of(run).resume)


def test_the_command_has_all_parameters_of_the_call(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    price = "{input_usd: 0.00000015, output_usd: 1}"
    given = (
        f"llm.writer={{model: openai/x, api_base: 'http://127.0.0.1:9/v1', price: {price}}}",
        "llm.designer.fallbacks=[{model: a, weight: 2}, b]",
        "knowledge.paths=[knowledge/cdna3.md]",
        "budget.usd=null",
        "harness.margin=0.00001",
    )
    run = ended(lab, "Ctrl-C stopped it", *given)
    words = shlex.split(ending.of(run).resume)
    overrides = [value for flag, value in itertools.pairwise(words) if flag == "--set"]
    assert params.load(None, overrides) == params.load(None, ["problem=identity", *given])
