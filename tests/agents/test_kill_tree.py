"""A child process is killed, whatever its descendants do."""

import subprocess
import sys

import psutil
import pytest

from kernel_scientist.agents.process import kill_tree


def test_a_process_whose_descendants_cannot_be_listed_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: psutil.Process, recursive: bool = False) -> list[psutil.Process]:
        raise psutil.AccessDenied(self.pid)

    monkeypatch.setattr(psutil.Process, "children", refused)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]) as process:
        kill_tree(process.pid)
        assert process.wait() < 0
    kill_tree(process.pid)  # there is none any more
