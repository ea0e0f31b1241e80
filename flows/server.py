"""The Prefect server of a flow: the configured one, or one that runs for the duration of the flow."""

import importlib
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

from kernel_scientist.records import environment
from kernel_scientist.report.ui import wait_for_server


@contextmanager
def serving() -> Generator[None]:
    """Provide a server for flows: the one at PREFECT_API_URL, otherwise a new one that is stopped on exit.

    Prefect would start a server as well, but that one keeps running when the flow is killed.
    """
    if os.environ.get("PREFECT_API_URL"):
        yield
        return
    port = _free_port()
    log_file = environment.cache_folder() / "prefect-server.log"
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("wb") as log:  # own session: Ctrl-C reaches only the flow
        process = subprocess.Popen(_command(port), env=_environment(), stdout=log, stderr=log, start_new_session=True)
    try:
        importlib.import_module("prefect.main")  # takes seconds: import while the server starts
        from prefect.settings import PREFECT_API_URL, temporary_settings

        wait_for_server("Prefect", f"http://127.0.0.1:{port}/api/health", process, log_file)
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
    """Flush Prefect's background threads while the server is still running."""
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
