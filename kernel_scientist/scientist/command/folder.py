"""The folder of one run: what the command finds there, and what it leaves. What is left is untrusted."""

import json
import os
import re
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernel_scientist.compilers.request import MOST_SOURCE
from kernel_scientist.records.kernel import Experiment
from kernel_scientist.records.text import valid

TASK, KERNEL, BASE, REPORT, SERVERS = "TASK.md", "kernel.py", "base.py", "report.md", ".mcp.json"
MOST_REPORT, MOST_STATEMENT = 20_000, 120
"""Bytes of a report, and characters of its first line, that are read."""
_PERCENT = r"[~+]?(-?\d{1,6}(?!\d)(?:\.\d{1,6})?)"
_RANGE = rf"{_PERCENT} *%?(?: *(?:to|-|–|—) *{_PERCENT})?"  # noqa: RUF001
_GAIN = re.compile(rf"^[^\w\n]*expected gain[:*_` ]*{_RANGE}", re.I | re.M)
"""Nothing of it crosses lines: otherwise a report of empty lines takes a time that grows with their square."""


@dataclass(frozen=True)
class AgentReport:
    """What an agent reports of its kernel: the first line with words is its hypothesis."""

    text: str = ""

    @property
    def statement(self) -> str:
        """Return the hypothesis on one line without signs of a heading; empty if there is none."""
        for line in self.text.splitlines():
            shown = "".join(c if c.isprintable() else " " for c in line)
            if stated := " ".join(shown.lstrip("#*- ").split()):
                return stated[:MOST_STATEMENT].rstrip()
        return ""

    @property
    def uplift(self) -> tuple[float, float]:
        """Return the gain that it expects, lowest and highest in percent: equal if it names one, zeros if none."""
        if (found := _GAIN.search(self.text)) is None:
            return 0.0, 0.0
        low, high = sorted((float(found[1]), float(found[2] or found[1])))
        return low, high

    def experiment(self, planned: Experiment) -> Experiment:
        """Return the planned experiment, whose hypothesis was left to the agent, with the agent's."""
        if not self.statement:
            return planned
        told = {"title": f"{planned.title}: {self.statement}", "description": self.text.strip(), "uplift": self.uplift}
        return planned.model_copy(update=told)


@dataclass(frozen=True)
class TaskFolder:
    """The folder; it is removed when the run is over."""

    path: Path

    @staticmethod
    @contextmanager
    def made(name: str, task: str, kernel: str, base: str, mcp: str) -> Generator["TaskFolder"]:
        """Make the folder of a kernel for the duration of a run.

        `kernel`: what is to be changed. `mcp`: the address of the laboratory's MCP server; empty: there is none.
        """
        with tempfile.TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True) as made:
            folder = Path(made).resolve()
            (folder / TASK).write_text(task)
            (folder / KERNEL).write_text(kernel)
            (folder / BASE).write_text(base)
            if mcp:
                servers = {"mcpServers": {"kernel-scientist": {"type": "http", "url": mcp}}}
                (folder / SERVERS).write_text(json.dumps(servers, indent=1) + "\n")
            yield TaskFolder(folder)

    @property
    def task(self) -> Path:
        """The task's file."""
        return self.path / TASK

    def kernel(self) -> str | None:
        """Return the kernel's text; None if there is no regular file of a kernel's size with one."""
        text = _read(self.path / KERNEL, MOST_SOURCE)
        return text if text and text.strip() else None

    def report(self) -> AgentReport:
        """Return the report; an empty one if there is none."""
        return AgentReport(_read(self.path / REPORT, MOST_REPORT) or "")


def _read(path: Path, most: int) -> str | None:
    """Return the text of a file, whatever its bytes; None if it is missing, no regular file (also a link) or longer."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(most + 1)
    return valid(content.decode("utf-8-sig", "replace")) if len(content) <= most else None
