"""Web servers as processes: the two web interfaces (Prefect, MLflow), and the Prefect server of a flow."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import click
from filelock import FileLock, Timeout

from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError, one_line
from kernel_scientist.sandbox import lifetime
from kernel_scientist.tracking import flow_links, local_store, page_links, pages
from kernel_scientist.tracking.access import no_answer

progress = logging.getLogger("kernel_scientist.progress")
START_S, STOP_S = 180, 10
HEALTH = {"Prefect": "/api/health", "MLflow": "/health"}


def serve(prefect_port: int, mlflow_port: int) -> None:
    """Start both servers, print their addresses, wait for Ctrl-C, stop them.

    Raises SetupError when a port is in use or a server does not start.
    """
    ports = {"Prefect": prefect_port, "MLflow": mlflow_port}
    for name, port in ports.items():
        _require_free(name, port)
    folder, uri = Path(sys.executable).parent, environment.tracking_uri()
    own = [sys.executable, "-m", "kernel_scientist.sandbox.lifetime", lifetime.WHOLE]  # else kill -9 leaves the servers
    commands = {
        "Prefect": [*own, str(folder / "prefect"), "server", "start", "--port", str(prefect_port)],
        "MLflow": [*own, str(folder / "mlflow"), "server", "--backend-store-uri", uri, "--port", str(mlflow_port)],
    }
    local_store.prepare(uri)
    if file := local_store.database(uri):
        commands["MLflow"] += ["--default-artifact-root", local_store.artifacts(file)]
    api = f"http://127.0.0.1:{prefect_port}/api"  # the page asks this address, by default that of port 4200
    env = {**os.environ, "PREFECT_SERVER_API_PORT": str(prefect_port), "PREFECT_UI_API_URL": api}
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a background job of a shell ignores it by default
        signal.signal(number, signal.default_int_handler)
    from mlflow import MlflowClient

    click.echo("starting both servers, usually 20 to 60 s ...", err=True)
    try:
        with ExitStack() as stack:
            with migrating():
                for name, port in ports.items():  # another `ui` may have taken them while this one waited for its turn
                    _require_free(name, port)
                running = {name: stack.enter_context(process(name, command, env)) for name, command in commands.items()}
                for name, server in running.items():
                    click.echo(f"{name:8} {wait_for_server(name, ports[name], server)}")
            if local_store.database(uri):
                prefect, mlflow = f"http://127.0.0.1:{prefect_port}", f"http://127.0.0.1:{mlflow_port}"
                client: Any = MlflowClient(tracking_uri=mlflow)
                try:
                    environment.serve_mlflow_pages(uri, mlflow)
                    page_links.follow(api, environment.mlflow_pages(uri))
                    flow_links.follow(client, prefect, partial(_known, api))
                except Exception as error:  # a server with a password, a store that cannot be written
                    click.echo(f"links between MLflow and Prefect stay as they were: {one_line(error)}")
            if page := runs_page(f"http://127.0.0.1:{mlflow_port}"):
                click.echo(f"kernels, the fastest first: {page}")
            click.echo(f"flows use this Prefect server with: export PREFECT_API_URL={api}")
            click.echo("Ctrl-C stops both")
            while all(server.poll() is None for server in running.values()):
                time.sleep(0.5)
            raise SetupError(_stopped(next(name for name, one in running.items() if one.poll() is not None)))
    except KeyboardInterrupt:
        click.echo("stopped")


def _known(api: str, flow_runs: Collection[str]) -> set[str]:
    """Return which of these flow runs a Prefect server has."""
    body = json.dumps({"flow_runs": {"id": {"any_": [*flow_runs]}}}).encode()
    request = urllib.request.Request(f"{api}/flow_runs/filter", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return {run["id"] for run in json.load(answer)}


def runs_page(server: str) -> str | None:
    """Return the address of the table of the newest experiment's runs, sorted by speedup; None without a run."""
    from mlflow import MlflowClient

    client: Any = MlflowClient(tracking_uri=server)
    experiments = [one.experiment_id for one in client.search_experiments(filter_string="name != 'suites'")]
    newest = client.search_runs(experiments, max_results=1, order_by=["attributes.start_time DESC"])
    if not newest:
        return None
    return pages.runs_table(newest[0].info.experiment_id, server)


def _require_free(name: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise SetupError(
                f"port {port} for the {name} server is not available ({error.strerror}); choose another with "
                f"--{name.lower()}-port"
            ) from error


def _stopped(name: str) -> str:
    """Return that a server stopped by itself, with the last line of its log."""
    lines = _log(name).read_text(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"the {name} server stopped by itself{f' ({last[:200]})' if last else ''}; its log is {_log(name)}"


def _log(name: str) -> Path:
    return environment.cache_folder() / f"{name.lower()}-server.log"


@contextmanager
def process(
    name: str, command: Sequence[str], env: Mapping[str, str] | None = None
) -> Generator[subprocess.Popen[bytes]]:
    """Run a server in a session of its own, which Ctrl-C does not reach; stop it on exit."""
    _log(name).parent.mkdir(parents=True, exist_ok=True)
    with _log(name).open("wb") as log:
        server = subprocess.Popen(
            command, cwd=environment.root(), env=env, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield server
    finally:
        for number in (signal.SIGINT, signal.SIGKILL):
            try:
                os.killpg(server.pid, number)
                server.wait(STOP_S)
            except subprocess.TimeoutExpired:
                continue
            except ProcessLookupError:
                break


@contextmanager
def migrating() -> Generator[None]:
    """Let one process at a time start a Prefect server whose database this version of Prefect did not make yet.

    Prefect makes and migrates its database while a server starts; of two that do so at the same time one fails.
    """
    folder = environment.prefect_folder()
    made = folder / f"made-by-{metadata.version('prefect')}"
    if made.exists() and (folder / "prefect.db").exists():
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "made.lock")
        try:
            held = lock.acquire(blocking=False)
        except Timeout:
            progress.warning("waiting until another process has made Prefect's database in %s", folder)
            held = lock.acquire()
    except OSError as error:
        raise SetupError(f"cannot write to {folder}, the folder of the Prefect server: {error.strerror}") from error
    with held:
        yield
        made.touch()


def wait_for_server(name: str, port: int, server: subprocess.Popen[bytes]) -> str:
    """Wait until a server answers; return its address. Raises SetupError when it stops or takes over `START_S`."""
    address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        if no_answer(address + HEALTH[name]) is None:
            return address
        time.sleep(0.1)
    raise SetupError(f"the {name} server did not start at {address}; its log is {_log(name)}")
