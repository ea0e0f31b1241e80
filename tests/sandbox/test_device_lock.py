"""The device's lock among real processes: the order of asking, the dead, the suspended, progress, and what is said."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.records.errors import DeviceBusyError
from kernel_scientist.sandbox import device_lock, device_queue
from kernel_scientist.sandbox.device_queue import Note, Ticket
from tests.conftest import ROOT
from tests.flows.service import until

PROGRAM = """
import sys
from pathlib import Path
from kernel_scientist.sandbox import device_lock
device, number, still_s, file = sys.argv[1:]
with device_lock.device(device, float(still_s), purpose=f"time k0000{number}", campaign="c-1"):
    with Path(file).open("a") as out:
        out.write(f"{number}\\n")
    if number == "0":
        sys.stdin.read()
"""
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def device() -> str:
    return f"test-{os.getpid()}-{time.monotonic_ns()}"


def tickets(device: str) -> list[Ticket]:
    return [t for t in device_queue.tickets() if t.device == device or (t.note and device in t.note.devices)]


@pytest.fixture
def start(device: str, tmp_path: Path) -> Iterator[Start]:
    """Start a process that asks for the device; return once it waits or holds. Number 0 holds until its input ends."""
    processes: list[subprocess.Popen[str]] = []

    def begin(number: int, still_s: float = 600) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, device, str(number), str(still_s), str(tmp_path / "served")]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)

        def is_in_the_queue() -> bool:
            mine = [ticket for ticket in tickets(device) if ticket.note and ticket.note.pid == process.pid]
            return any(ticket.device or number for ticket in mine)

        until(is_in_the_queue, "it is in the queue")
        return process

    yield begin
    for process in processes:
        process.kill()
        with process:
            pass


def served(tmp_path: Path) -> list[int]:
    return [int(line) for line in (tmp_path / "served").read_text().split()]


def test_the_order_of_asking_is_kept(device: str, start: Start, tmp_path: Path) -> None:
    with device_lock.device(device, 60):
        waiting = [start(number) for number in (3, 1, 4, 2, 5)]
        assert [bool(ticket.device) for ticket in tickets(device)] == [True, *[False] * 5]
        assert device_queue.is_wanted(device)
        assert not device_lock.Turn(lambda still_s: device_lock.device(device, still_s)).taken_at_once()
    assert [process.wait(120) for process in waiting] == [0] * 5
    assert served(tmp_path) == [3, 1, 4, 2, 5] and not tickets(device) and not device_queue.is_wanted(device)


def test_the_dead_are_skipped(device: str, start: Start, tmp_path: Path) -> None:
    holder, first, second, third = (start(number) for number in (0, 1, 2, 3))
    second.kill()
    second.wait()
    assert len(tickets(device)) == 3, "its ticket is gone with it"
    holder.kill()
    assert [first.wait(120), third.wait(120)] == [0, 0] and served(tmp_path) == [0, 1, 3]


def test_a_suspended_waiter_keeps_nobody_waiting(
    device: str, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, asleep = start(0), start(1)
    asleep.send_signal(signal.SIGSTOP)
    holder.communicate("")
    monkeypatch.setattr(device_queue, "ASLEEP_S", 1.0)
    with device_lock.device(device, 600):
        assert served(tmp_path) == [0]
    asleep.send_signal(signal.SIGCONT)
    assert asleep.wait(120) == 0 and served(tmp_path) == [0, 1]


def test_progress_is_waited_for_and_standing_still_is_named(device: str, start: Start, tmp_path: Path) -> None:
    limit_s = 4.0
    with device_lock.device(device, 60, purpose="final", campaign="c-2"):
        patient, until_s = start(1, limit_s), time.monotonic() + 2.5 * limit_s
        while time.monotonic() < until_s:
            device_queue.progressed()
            time.sleep(0.1)
        assert patient.poll() is None and not (tmp_path / "served").exists()
        assert patient.wait(120) == 1, "from here on nothing moves"
        assert patient.stderr
        error = patient.stderr.read()
    message = f"device {device} was busy for 4 s in which nothing moved"
    assert f"DeviceBusyError: {message}" in error
    who = f"by final of campaign c-2 (process {os.getpid()} of "
    assert who in error and f"look at process {os.getpid()}, stop it if it hangs" in error
    assert "harness.device_wait_s" in error


def test_a_wait_is_told_who_holds_it(device: str, start: Start, caplog: pytest.LogCaptureFixture) -> None:
    holder = start(0)
    start(1)
    with caplog.at_level(logging.DEBUG, "kernel_scientist.progress"):
        threading.Timer(0.3, lambda: holder.stdin and holder.stdin.close()).start()
        with device_lock.device(device, 600):
            pass
    said = [record.getMessage() for record in caplog.records]
    assert f"by time k00000 of campaign c-1 (process {holder.pid} of " in said[0] and "place 2 in the queue" in said[0]


def test_a_device_that_is_busy_at_once_is_told(device: str) -> None:
    held = device_lock.device(device, 0, purpose="confirm k00015, set 2")
    message = "was busy when it was asked for: held since .* by confirm k00015, set 2"
    with held, pytest.raises(DeviceBusyError, match=message), device_lock.device(device, 0):
        pass


def test_a_free_device_is_taken_past_those_who_want_another(device: str, start: Start) -> None:
    start(0)
    start(1)
    with device_lock.one_of([device, f"{device}-b"], 60) as name:
        assert name == f"{device}-b"
        assert [t.device for t in tickets(device) if t.note and t.note.pid == os.getpid()] == [name]


@given(st.binary(max_size=200), st.text(max_size=50))
def test_what_others_write_is_only_text(content: bytes, purpose: str) -> None:
    place = device_queue.QueuePlace(Note.of_this_process(("nothing",), purpose, ""))
    try:
        (own,) = [t for t in device_queue.tickets() if t.order == place.order]
        assert own.words.isprintable()
        (device_queue.FOLDER / device_queue.QUEUE / place.order).write_bytes(content)
        (own,) = [t for t in device_queue.tickets() if t.order == place.order]
        assert own.words.isprintable()
    finally:
        place.leave()
