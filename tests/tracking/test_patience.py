"""An MLflow server that is away is waited for, and the terminal says so."""

import logging
import os
import re
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
from kernel_scientist.tracking import failures
from kernel_scientist.tracking.access import insist, no_answer
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import ROOT
from tests.small_disk import on_a_disk_of
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


PASSED_ON = (
    "TEMPORARILY_UNAVAILABLE: (raised as a result of Query-invoked autoflush; consider using a session.no_autoflush "
    "block if this flush is occurring prematurely)\n(sqlite3.OperationalError) database or disk is full\n"
    "[SQL: INSERT INTO runs (run_uuid) VALUES (?)]\n[parameters: ('x',)]"
)


def test_a_reason_is_in_the_words_of_the_database() -> None:
    assert failures.reason(ConnectionError(PASSED_ON), "http://server") == "database or disk is full"
    lost = "(psycopg2.OperationalError) server closed the connection unexpectedly\n\tThis probably means"
    assert failures.reason(ConnectionError(lost), "http://server") == "server closed the connection unexpectedly"
    assert failures.reason(ConnectionError(" refused\nmore"), "http://server") == "refused"
    assert failures.reason(ConnectionError(), "http://server") == "ConnectionError"


FILL = """
import os, sys, threading, time
from pathlib import Path
from kernel_scientist.records import environment
environment.prepare()
import logging
logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.WARNING)
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import load
from kernel_scientist.tracking.access import insist
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.small_disk import fill
from tests.trials import trial

folder, uri = Path(sys.argv[1]), f"sqlite:///{sys.argv[1]}/mlflow.db"
problem = load(Path(sys.argv[2]))
store = MlflowStore(uri, "identity-cpu")
run = store.start("a-campaign", {}, problem)
fill(folder / "filling")
stopped, told = threading.Event(), threading.Event()


class Told(logging.Handler):
    def emit(self, record):
        told.set()


logging.getLogger("kernel_scientist.progress").addHandler(Told())


def make_room():
    told.wait()
    (folder / "filling").unlink()


threading.Thread(target=make_room).start()
insist(lambda: store.log(run, trial("k00001", 1.0), Population(), problem), uri, stopped)
print("recorded", [one.kernel.name for one in store.population(run)], len(store._children(run.run_id)))
"""


def test_a_full_disk_is_waited_for_and_named(tmp_path: Path, empty_store: Path) -> None:
    before = "import shutil, sys; shutil.copy(sys.argv[3], sys.argv[1])\n"
    done = on_a_disk_of(
        "4m", tmp_path, "-c", before + FILL, str(tmp_path), str(ROOT / "problems/identity"), str(empty_store)
    )
    said = done.stdout.splitlines()
    assert len(said) == 3 and not done.stderr, done.stdout + done.stderr
    full = rf", for the MLflow store sqlite:///{tmp_path}/mlflow\.db: database or disk is full \(0 MB are free for "
    assert re.search(f"{full}{tmp_path}\\)$", said[0]) and "answers again" in said[1]
    assert said[2] == "recorded ['k00001'] 1"


AWAY = """
import logging, threading
from kernel_scientist.records import environment
environment.prepare()
logging.basicConfig(format="%(message)s", level=logging.WARNING)
from mlflow import MlflowClient
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.tracking.access import insist
uri = "http://127.0.0.1:9"
try:
    insist(MlflowClient(tracking_uri=uri).search_experiments, uri, threading.Event(), wait_s=-1)
except InfrastructureError as error:
    print(error)
"""


def test_a_server_that_is_away_gets_no_other_line_than_ours() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
    done = subprocess.run([sys.executable, "-c", AWAY], env=environment, capture_output=True, text=True, check=True)
    assert not done.stderr and done.stdout.startswith("the MLflow store http://127.0.0.1:9 did not take records")
    assert "(Connection refused)" in done.stdout
