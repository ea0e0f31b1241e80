"""Processes of a suite's campaigns: Ctrl-C ends the one that runs, and no other begins."""

import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from kernel_scientist.campaign import campaign_process, stopping
from kernel_scientist.records.errors import StoppedError

GRACEFUL = """
import pathlib, signal, sys, time
def end(number, frame):
    pathlib.Path(sys.argv[1]).write_text(f"asked by {number}")
    sys.exit(130)
signal.signal(signal.SIGTERM, end)
print("begun", flush=True)
time.sleep(600)
"""


def test_the_last_line_of_a_command_is_its_answer(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('a'); print('b')"]
    assert campaign_process.called(command, tmp_path / "log", None) == "b"
    assert (tmp_path / "log").read_text() == "a\nb\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_the_campaign_that_runs_to_end_and_no_other_begins(
    number: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    for handled in stopping.REASONS:  # what was stopped keeps them, for a second signal
        request.addfinalizer(partial(signal.signal, handled, signal.getsignal(handled)))
    log, seen = tmp_path / "log", tmp_path / "seen"
    command = [sys.executable, "-c", GRACEFUL, str(seen)]
    with stopping.stoppable(lambda: None), ThreadPoolExecutor(1) as threads:
        running = threads.submit(campaign_process.called, command, log, None)
        while not (log.exists() and "begun" in log.read_text()):
            time.sleep(0.05)
        signal.raise_signal(number)
        with pytest.raises(StoppedError):
            running.result()
        assert seen.read_text() == f"asked by {signal.SIGTERM.value}"
        with pytest.raises(StoppedError):
            campaign_process.called([sys.executable, "-c", "print()"], tmp_path / "next", None)
        assert not (tmp_path / "next").exists()
    stopping._requested.clear()


def test_a_campaign_that_somebody_else_stopped_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        campaign_process.called([sys.executable, "-c", "raise SystemExit(130)"], tmp_path / "log", None)
