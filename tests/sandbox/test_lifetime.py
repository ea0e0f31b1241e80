"""A command that is bound to its parent dies with it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.conftest import ROOT, dedent
from tests.evaluation.test_evaluator import _alive


def test_a_command_dies_with_a_killed_parent() -> None:
    program = dedent(
        """
        import os, signal, subprocess, sys
        command = [sys.executable, "-m", "kernel_scientist.sandbox.lifetime", "sleep", "60"]
        print(subprocess.Popen(command, start_new_session=True).pid, flush=True)
        sys.stdin.read()
        """
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    _until(lambda: Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"sleep"))
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    _until(lambda: not _alive(child))


def test_a_command_s_exit_status_is_its_own() -> None:
    command = [sys.executable, "-m", "kernel_scientist.sandbox.lifetime", sys.executable, "-c", "raise SystemExit(7)"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 7


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
