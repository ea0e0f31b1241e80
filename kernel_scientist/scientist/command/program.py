"""A campaign's command and one run of it: its limit, its end, what it printed."""

import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from typing_extensions import override

from kernel_scientist.records import environment
from kernel_scientist.records.errors import StoppedError
from kernel_scientist.records.text import valid
from kernel_scientist.sandbox import guest
from kernel_scientist.sandbox.guest import Walls

POLL_S = 0.2
"""Interval at which the limit and the end of the campaign are looked at, in seconds."""
PATIENCE_S = 5.0
"""Seconds that a run that was ended has to end all that it started."""
MOST_PRINTED = 20_000
"""Bytes of what a run printed that are kept, the last ones."""
TASK = "KERNEL_SCIENTIST_TASK"
"""Environment variable with the task file's path."""
PLACE = "{task}"
"""What stands for that path in a command."""


@dataclass(frozen=True)
class CommandRun:
    """One run that ended."""

    status: int | None
    """As a shell reports it; None: it was ended at its limit."""
    seconds: float
    printed: str

    @property
    def ending(self) -> str:
        """Return how it ended, if that was not as it should."""
        if self.status is None:
            return f"its command was ended at its limit, after {self.seconds:.0f} s"
        return f"its command ended with status {self.status}" if self.status else ""

    @property
    def last_line(self) -> str:
        """Return the last line that it printed."""
        lines = self.printed.split("\n")
        return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "it printed nothing")


@dataclass(frozen=True)
class AgentCommand:
    """The command line of a campaign's agent, and what it may do."""

    line: str
    limit_s: float
    """Limit of one run in seconds."""
    writable: tuple[str, ...] = ()
    """Files and folders that it may write besides its own folder."""
    hidden: tuple[str, ...] = ()
    """Files and folders that it cannot read."""

    def words(self, task: Path) -> list[str]:
        """Return the program and its arguments for a task's file."""
        program, *arguments = (word.replace(PLACE, str(task)) for word in shlex.split(self.line))
        return [str(Path(shutil.which(program) or program).absolute()), *arguments]

    def run(self, task: Path, stopped: threading.Event) -> CommandRun:
        """Run it in the folder of a task's file, until it ends by itself or at its limit; nothing of it is left then.

        Raises StoppedError once `stopped` is set.
        """
        folder = task.parent
        (scratch := folder / ".tmp").mkdir()
        variables = {**environment.of_others(), TASK: str(task), "TMPDIR": str(scratch)}
        walls = Walls(str(folder), self.writable, self.hidden)
        began = time.monotonic()
        process = subprocess.Popen(
            guest.command(self.words(task), walls),
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdout is not None
        printed, status = _Tail(process.stdout), None
        try:
            while (status := process.poll()) is None and time.monotonic() - began < self.limit_s:
                if stopped.wait(POLL_S):
                    raise StoppedError("the campaign was stopped")
        finally:
            _end(process)
        return CommandRun(status, time.monotonic() - began, printed.text())


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a run with all that it has started (`lifetime.keep`)."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class _Tail(threading.Thread):
    """Reads what a run prints, and keeps the end."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._stream, self._kept = stream, b""
        self.start()

    @override
    def run(self) -> None:
        with self._stream as stream:
            while chunk := os.read(stream.fileno(), 1 << 16):
                self._kept = (self._kept + chunk)[-MOST_PRINTED:]

    def text(self) -> str:
        """Return the end of what was printed, once the run has ended."""
        self.join(PATIENCE_S)
        return valid(self._kept.decode(errors="replace"))
