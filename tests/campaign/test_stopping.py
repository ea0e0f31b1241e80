"""Signals to a campaign's process, at every moment, and a reader of its output that ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.campaign.test_campaign import SETTINGS, runs_of_campaigns
from tests.conftest import lab_environment, without_progress
from tests.processes import processes_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hears_hangups")]


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_stops_everything_and_the_campaign_can_be_resumed(times: int, lab: Path) -> None:
    """With the flow's own Prefect server: no process is left running. A second Ctrl-C waits for nothing."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kernel_scientist", "optimize", *SETTINGS],
        cwd=lab,
        env=lab_environment(lab),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    while (line := process.stderr.readline()) and not line.startswith("k00001"):
        pass
    for number in range(times):
        time.sleep(0.2 * number)  # two signals at once may be handled as one
        os.killpg(process.pid, signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait(60) == 130, rest
    (stopped,) = runs_of_campaigns(lab)
    command = f"kernel-scientist optimize --campaign {stopped.data.tags['campaign']} --set"
    assert f"continue with `{command}" in rest, "another campaign of the problem may be the latest one then"
    assert "Traceback" not in rest and "Crashed" not in rest
    assert not processes_of(lab)
    if times == 1:
        assert stopped.data.tags["ended"] == "Ctrl-C stopped it" and stopped.data.metrics["ended_s"] > 0


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGHUP, "starting a Prefect server"),
        (signal.SIGINT, "preparing worker processes"),
        (signal.SIGTERM, "opening the MLflow store"),
    ],
)
def test_a_signal_before_the_campaign_exists_leaves_nothing(
    number: int, moment: str, lab: Path, request: pytest.FixtureRequest
) -> None:
    own = moment.startswith("starting")
    process = subprocess.Popen(
        [sys.executable, "-m", "kernel_scientist", "optimize", *SETTINGS],
        cwd=lab,
        env=lab_environment(lab, **({} if own else {"PREFECT_API_URL": request.getfixturevalue("prefect_api")})),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while not (line := process.stderr.readline()).startswith(moment):
        assert line, "it ended"
    process.send_signal(number)
    rest = process.stderr.read()
    assert process.wait(60) == 130, rest
    assert without_progress(rest) == ["stopped before the campaign began: nothing was recorded"]
    assert not runs_of_campaigns(lab)


@pytest.mark.parametrize("hangs_up", [False, True])
def test_a_campaign_outlasts_its_reader_and_ends_with_its_terminal(hangs_up: bool, lab: Path, prefect_api: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kernel_scientist", "optimize", *SETTINGS],
        cwd=lab,
        env=lab_environment(lab, PREFECT_API_URL=prefect_api),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    while not (line := process.stdout.readline()).startswith("k00001"):
        assert line, "it ended"
    process.stdout.close()
    for _ in range(2 * hangs_up):  # the kernel sends one, and the shell another
        process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
    assert process.wait() == (130 if hangs_up else 0)
    (run,) = runs_of_campaigns(lab)
    assert run.info.status == ("KILLED" if hangs_up else "FINISHED")
    assert not hangs_up or run.data.tags["ended"] == "its terminal was closed (SIGHUP)"
