"""The two web interfaces: a Prefect server and an MLflow server."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import click

from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.tracking.access import no_answer

START_S = 180


def serve(prefect_port: int, mlflow_port: int) -> None:
    """Start both servers, print their addresses, wait for Ctrl-C, stop them.

    Raises SetupError when a port is in use or a server does not start.
    """
    for name, port in (("Prefect", prefect_port), ("MLflow", mlflow_port)):
        _require_free(name, port)
    uri = environment.tracking_uri()
    folder = Path(sys.executable).parent
    commands = {
        "Prefect": [str(folder / "prefect"), "server", "start", "--port", str(prefect_port)],
        "MLflow": [str(folder / "mlflow"), "server", "--backend-store-uri", uri, "--port", str(mlflow_port)],
    }
    root = environment.root()
    if uri.startswith("sqlite:///"):
        Path(uri.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
        commands["MLflow"] += ["--default-artifact-root", (root / "mlruns" / "artifacts").as_uri()]
    logs = environment.cache_folder()
    logs.mkdir(parents=True, exist_ok=True)
    running: list[subprocess.Popen[bytes]] = []
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a background job of a shell ignores it by default
        signal.signal(number, signal.default_int_handler)
    try:
        for name, command in commands.items():
            with (logs / f"{name.lower()}-server.log").open("wb") as log:
                running.append(subprocess.Popen(command, cwd=root, stdout=log, stderr=log, start_new_session=True))
        addresses = {"Prefect": f"http://127.0.0.1:{prefect_port}", "MLflow": f"http://127.0.0.1:{mlflow_port}"}
        for (name, address), process in zip(addresses.items(), running, strict=True):
            health = address + ("/api/health" if name == "Prefect" else "/health")
            wait_for_server(name, health, process, logs / f"{name.lower()}-server.log")
            click.echo(f"{name:8} {address}")
        click.echo(f"flows use this Prefect server with: export PREFECT_API_URL={addresses['Prefect']}/api")
        click.echo("Ctrl-C stops both")
        while all(p.poll() is None for p in running):
            time.sleep(0.5)
        raise SetupError(f"a server stopped by itself; its log is in {logs}")
    except KeyboardInterrupt:
        click.echo("stopped")
    finally:
        for process in running:
            _stop(process)


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


def wait_for_server(name: str, address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server answers. Raises SetupError when it stops or takes longer than `START_S`."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        if no_answer(address) is None:
            return
        time.sleep(0.1)
    raise SetupError(f"the {name} server did not start at {address}; its log is {log}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(10)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return
