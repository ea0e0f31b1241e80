"""The Prefect server a flow talks to: the one that is configured, or one of ours for the time of the flow."""

import importlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError

START_S = 180


@contextmanager
def serving() -> Generator[None]:
    """Make sure that flows find a server.

    With PREFECT_API_URL that one is used. Without, one is started over this laboratory's database and ended
    afterwards. Prefect would do so too, but its server outlives a flow that is killed; this one does not.
    """
    if os.environ.get("PREFECT_API_URL"):
        yield
        return
    port = _free_port()
    log_file = environment.cache_folder() / "prefect-server.log"
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("wb") as log:  # in a session of its own: Ctrl-C is the flow's, which ends the server last
        process = subprocess.Popen(_command(port), env=_environment(), stdout=log, stderr=log, start_new_session=True)
    try:
        importlib.import_module("prefect.main")  # takes seconds, as the server does: at the same time
        from prefect.settings import PREFECT_API_URL, temporary_settings

        _wait(process, f"http://127.0.0.1:{port}/api/health", log_file)
        with temporary_settings({PREFECT_API_URL: f"http://127.0.0.1:{port}/api"}):
            try:
                yield
            finally:
                _drain()
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _drain() -> None:
    """Send what Prefect's background threads still hold, while there is a server to send it to."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    APILogWorker.drain_all(at_exit=True, timeout=10)
    EventsWorker.drain_all(at_exit=True, timeout=10)


def _command(port: int) -> list[str]:
    server = ["uvicorn", "--factory", "prefect.server.api.server:create_app", "--host", "127.0.0.1"]
    options = ["--port", str(port), "--log-level", "error", "--lifespan", "on"]
    return [sys.executable, "-m", "kernel_scientist.sandbox.leash", sys.executable, "-m", *server, *options]


def _environment() -> dict[str, str]:
    return {**os.environ, "PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SetupError(f"the Prefect server ended by itself; its words are in {log}")
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise SetupError(f"the Prefect server did not come up within {START_S} s; its words are in {log}")
