"""The two web pages: a Prefect server and an MLflow server over this laboratory's store."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import click

from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError

START_S = 120


def serve(prefect_port: int, mlflow_port: int) -> None:
    """Start both servers, print their addresses, wait for Ctrl-C, end them.

    Raises SetupError when a port is taken or a server does not come up.
    """
    for name, port in (("Prefect", prefect_port), ("MLflow", mlflow_port)):
        _free(name, port)
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
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell's background job is born ignoring it
        signal.signal(number, signal.default_int_handler)
    try:
        for name, command in commands.items():
            with (logs / f"{name.lower()}-server.log").open("wb") as log:
                running.append(subprocess.Popen(command, cwd=root, stdout=log, stderr=log, start_new_session=True))
        addresses = {"Prefect": f"http://127.0.0.1:{prefect_port}", "MLflow": f"http://127.0.0.1:{mlflow_port}"}
        for (name, address), process in zip(addresses.items(), running, strict=True):
            _wait(name, address + ("/api/health" if name == "Prefect" else "/health"), process, logs)
            click.echo(f"{name:8} {address}")
        click.echo(f"flows use this Prefect server with: export PREFECT_API_URL={addresses['Prefect']}/api")
        click.echo("Ctrl-C ends both")
        while all(p.poll() is None for p in running):
            time.sleep(0.5)
        raise SetupError(f"a server ended by itself; its words are in {logs}")
    except KeyboardInterrupt:
        click.echo("ended")
    finally:
        for process in running:
            _end(process)


def _free(name: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise SetupError(
                f"port {port} for the {name} server cannot be had ({error.strerror}); choose another with "
                f"--{name.lower()}-port"
            ) from error


def _wait(name: str, address: str, process: subprocess.Popen[bytes], logs: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    raise SetupError(
        f"the {name} server did not come up at {address}; its words are in {logs}/{name.lower()}-server.log"
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(10)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return
