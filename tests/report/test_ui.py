"""Both web interfaces start and stop together."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from kernel_scientist.problems import load
from kernel_scientist.tracking import pages
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import ROOT, lab_environment
from tests.processes import processes_of


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_both_servers_answer_and_end(lab: Path) -> None:
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    store.start("a-campaign", {}, load(ROOT / "problems" / "identity"))
    prefect, mlflow = free_port(), free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "kernel_scientist", "ui", "--prefect-port", str(prefect), "--mlflow-port", str(mlflow)],
        cwd=lab,
        env=lab_environment(lab, PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline() for _ in range(4)]
        assert f"http://127.0.0.1:{prefect}" in lines[0] and f"http://127.0.0.1:{mlflow}" in lines[1], lines
        assert pages.runs_table(store.experiment_id, f"http://127.0.0.1:{mlflow}") in lines[2], lines
        assert pages.server(store.uri) == f"http://127.0.0.1:{mlflow}"
        with urllib.request.urlopen(f"http://127.0.0.1:{prefect}/ui-settings", timeout=10) as answer:
            assert json.load(answer)["api_url"] == f"http://127.0.0.1:{prefect}/api"
        with urllib.request.urlopen(f"http://127.0.0.1:{prefect}/api/health", timeout=10) as answer:
            assert json.load(answer) is True
        with urllib.request.urlopen(f"http://127.0.0.1:{mlflow}/", timeout=10) as page:
            assert b'<div id="root"' in page.read()
        request = urllib.request.Request(
            f"http://127.0.0.1:{mlflow}/api/2.0/mlflow/experiments/search",
            data=b'{"max_results": 10}',
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert "identity-cpu" in {e["name"] for e in json.load(answer)["experiments"]}
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert not processes_of(lab)


@pytest.mark.slow
def test_no_server_outlives_a_killed_command(lab: Path) -> None:
    ports = ["--prefect-port", str(free_port()), "--mlflow-port", str(free_port())]
    command = [sys.executable, "-m", "kernel_scientist", "ui", *ports]
    environment = lab_environment(lab, PYTHONUNBUFFERED="1")
    process = subprocess.Popen(command, cwd=lab, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert any("Ctrl-C" in line for line in iter(process.stdout.readline, "")), "the servers did not start"
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60
    while processes_of(lab):
        assert time.monotonic() < deadline
        time.sleep(0.1)
