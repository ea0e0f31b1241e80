"""An MLflow server that is away is waited for, and the terminal says so."""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import load
from kernel_scientist.records.errors import InfrastructureError, StoppedError
from kernel_scientist.tracking.access import insist, no_answer
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import ROOT
from tests.trials import trial

PROBLEM = load(ROOT / "problems" / "identity")


class Server:
    """A real MLflow server over a store in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.uri = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        command = [str(Path(sys.executable).parent / "mlflow"), "server", "--port", str(self.port), "--workers", "1"]
        command += ["--backend-store-uri", f"sqlite:///{self.folder}/mlflow.db"]
        command += ["--artifacts-destination", str(self.folder / "artifacts")]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        while no_answer(f"{self.uri}/health"):
            assert self.process.poll() is None, (self.folder / "server.log").read_text()
            time.sleep(0.2)

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.mark.slow
def test_a_kernel_is_recorded_once_by_a_server_that_was_away(
    tmp_path: Path, empty_store: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")  # otherwise MLflow's client may wait long enough itself
    (tmp_path / "mlflow.db").write_bytes(empty_store.read_bytes())
    server, stopped = Server(tmp_path), threading.Event()
    try:
        store = MlflowStore(server.uri, "identity-cpu")
        run = store.start("a-campaign", {}, PROBLEM)
        server.kill()
        with caplog.at_level(logging.WARNING, "kernel_scientist.progress"):
            back = threading.Timer(3, server.start)
            back.start()
            act = lambda: store.log(run, trial("k00001", 1.0), Population(), PROBLEM)  # noqa: E731
            insist(act, server.uri, stopped)
            back.join()
        said = [record.getMessage() for record in caplog.records if record.name == "kernel_scientist.progress"]
        assert len(said) == 2 and "answers again" in said[1]
        assert said[0].startswith("waiting since ") and f", for the MLflow store {server.uri}: " in said[0]
        assert ", until " in said[0] and "\n" not in said[0]
        assert [one.kernel.name for one in store.population(run)] == ["k00001"]
        assert len(store._children(run.run_id)) == 1
    finally:
        server.kill()


def test_waiting_ends() -> None:
    stopped = threading.Event()

    def away() -> None:
        raise ConnectionError("refused\nmore")

    with pytest.raises(InfrastructureError, match=r"store did not take records .* \(refused\).*--resume"):
        insist(away, "store", stopped, wait_s=-1)
    stopped.set()
    with pytest.raises(StoppedError):
        insist(away, "store", stopped)

    def broken() -> None:
        raise TypeError("a fault of the program")

    with pytest.raises(TypeError):
        insist(broken, "store", threading.Event())
