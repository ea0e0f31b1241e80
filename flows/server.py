"""The Prefect server of a flow: the configured one, or one that runs for the duration of the flow."""

import importlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager

from kernel_scientist.records.errors import StoppedError
from kernel_scientist.tracking import web_servers

DRAIN_S, STOPPED_S = 10.0, 1.0
"""How long the last logs and events of a flow may take to be sent: at its end, and after Ctrl-C."""
progress = logging.getLogger("kernel_scientist.progress")
SERVICES = "PREFECT_SERVER_SERVICES_"
CHEAP = {
    f"{SERVICES}TASK_RUN_RECORDER_BATCH_SIZE": "100",
    f"{SERVICES}TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
    f"{SERVICES}TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    f"{SERVICES}EVENT_PERSISTER_ENABLED": "0",
    f"{SERVICES}TRIGGERS_ENABLED": "0",
}
"""Settings that cut the server's CPU time from 30 to 4 ms a task run. Task runs are recorded a hundred at a time, at
least every second; events are not kept and trigger nothing: a server for one flow has no automations."""


UI_URL = "http://127.0.0.1:4200"
"""Where `kernel-scientist ui` shows the runs of a flow's own server, which has no pages and ends with the flow."""


@contextmanager
def serving(imports: Sequence[str] = ()) -> Generator[None]:
    """Provide a server for flows: the one at PREFECT_API_URL, otherwise a new one that is stopped on exit.

    `imports`: modules that the flow needs and that take seconds to import; that is done while the server starts.

    Prefect would start a server as well, but that one keeps running when the flow is killed.
    """
    if os.environ.get("PREFECT_API_URL"):
        yield
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    server = ["uvicorn", "--factory", "prefect.server.api.server:create_app", "--host", "127.0.0.1"]
    options = ["--port", str(port), "--log-level", "error", "--lifespan", "on"]
    command = [sys.executable, "-m", "kernel_scientist.sandbox.lifetime", sys.executable, "-m", *server, *options]
    settings = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1", **CHEAP}
    progress.info("starting a Prefect server for this run, usually 20 s")
    with ExitStack() as stack:
        with web_servers.migrating():
            process = stack.enter_context(web_servers.process("Prefect", command, {**os.environ, **settings}))
            for name in ("prefect.main", *imports):
                importlib.import_module(name)
            from prefect.settings import PREFECT_API_URL, PREFECT_UI_URL, temporary_settings

            address = web_servers.wait_for_server("Prefect", port, process)
        with temporary_settings({PREFECT_API_URL: f"{address}/api", PREFECT_UI_URL: UI_URL}):
            try:
                yield
            except (KeyboardInterrupt, StoppedError):
                _drain(STOPPED_S)
                os.killpg(process.pid, signal.SIGKILL)  # whoever stopped the flow does not wait for its farewell
                raise
            except BaseException:
                _drain(DRAIN_S)
                raise
            _drain(DRAIN_S)


def is_worker_s() -> bool:
    """Whether the flow run of this process is a deployment's, so that a worker started it and shows its log."""
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    return bool(context and context.flow_run and context.flow_run.deployment_id)


def end_by_signal() -> None:
    """End a worker's process as SIGTERM does by default, once its work has stopped.

    Its worker knows that as a cancellation; an exception would be logged as a crash, with a traceback.
    """
    _drain(DRAIN_S)
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def _drain(timeout_s: float) -> None:
    """Flush Prefect's background threads while the server is still running."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    APILogWorker.drain_all(at_exit=True, timeout=timeout_s)
    EventsWorker.drain_all(at_exit=True, timeout=timeout_s)
