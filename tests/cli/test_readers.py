"""A command whose output nobody reads any more: its exit code is not 1, which would be a negative result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import lab_environment

OUTLASTS = """
import sys
from kernel_scientist.cli import terminal
terminal.outlast()
print("a" * 10**6, flush=True)
print("b", file=sys.stderr)
sys.exit(3)
"""


def unread(lab: Path, stream: str, *arguments: str) -> int:
    """The exit code of Python without a reader of `stream`."""
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: writer}
    done = subprocess.run([sys.executable, *arguments], cwd=lab, env=lab_environment(lab), **streams)  # type: ignore
    os.close(writer)
    return done.returncode


@pytest.mark.parametrize(
    ("stream", "arguments"),
    [("stdout", "problems list"), ("stdout", "problems list --json"), ("stderr", "problems nope"), ("stdout", "-h")],
)
def test_a_command_without_a_reader_ends_as_by_sigpipe(lab: Path, stream: str, arguments: str) -> None:
    assert unread(lab, stream, "-m", "kernel_scientist", *arguments.split()) == 141


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_campaign_goes_on_without_a_reader(lab: Path, stream: str) -> None:
    assert unread(lab, stream, "-c", OUTLASTS) == 3
