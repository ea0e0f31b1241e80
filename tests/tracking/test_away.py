"""A store that goes away while a command reads it ends the command with one sentence and exit code 2."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import load
from kernel_scientist.records import params
from kernel_scientist.records.errors import SetupError
from kernel_scientist.tracking import failures
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import ROOT, Cli, without_progress
from tests.report.test_training import designed
from tests.tracking.test_patience import Server
from tests.trials import trial

PROBLEM = load(ROOT / "problems" / "identity")
COMMANDS = (("report",), ("export",), ("watch", "--once"), ("compare",))
KERNELS = (
    trial("k00001", 1.0),
    designed(trial("k00002", 1.9, {"k00001": (1.8, 2.0)}, base="k00001"), 5, 10),
)
MOST = 64
"""More connections than a command makes."""


class Gate:
    """An address before a server that takes so many connections, one at a time, and is gone then."""

    def __init__(self, port: int, connections: int) -> None:
        self.port, self.left = port, connections
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while self.left > 0:
            with suppress(OSError):
                client, _ = self.listener.accept()
                self.left -= 1
                server = socket.create_connection(("127.0.0.1", self.port))
                asked = self._request(client)
                server.sendall(asked)
                while answered := server.recv(1 << 16):
                    client.sendall(answered)
                client.close()
        self.listener.close()

    @staticmethod
    def _request(client: socket.socket) -> bytes:
        """Read a request, whose connection is to end with the answer."""
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(1 << 16)
        head, _, body = head.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
        length = next((int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:")), 0)
        while len(body) < length:
            body += client.recv(1 << 16)
        return b"\r\n".join([*lines, b"Connection: close", b"", body])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("away")
    (folder / "mlflow.db").write_bytes(empty_store.read_bytes())
    found = Server(folder)
    try:
        yield found
    finally:
        found.kill()


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_at_whichever_request_it_goes_away(
    command: tuple[str, ...], server: Server, lab: Path, cli_here: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")  # else MLflow's client tries for a minute
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    store, names = MlflowStore(server.uri, "identity-cpu"), list[str]()
    for end in ("aaaa", "bbbb"):
        settings = params.load(None, ["problem=identity"]).model_dump(by_alias=True)
        run = store.start(f"identity-cpu-20260101-000000-{end}", settings, PROBLEM)
        population = Population()
        for made in KERNELS:
            store.log(run, made, population, PROBLEM)
            population.add(made)
        store.finish(run, "k00001")
        names.append(run.campaign)
    given = names if command == ("compare",) else names[:1]
    refused = 0
    for connections in range(1, MOST):
        gate = Gate(server.port, connections)
        where = {"MLFLOW_TRACKING_URI": gate.uri}
        done = cli_here(command[0], *given, *command[1:], "--set", "problem=identity", **where)
        if gate.left > 0:
            break
        if done.returncode != 2:  # the last request was the last that it had
            continue
        refused += 1
        (error,) = without_progress(done.stderr)
        assert re.match(rf"error: (the MLflow store|no MLflow server answers at) {gate.uri}[: ]", error), done.stderr
        assert not done.stdout
    assert refused > 3


def test_errors_of_the_store_are_told_from_those_of_the_program(tmp_path: Path) -> None:
    class Broken:
        where = "here"

        def act(self, error: Exception) -> None:
            raise error

    client = failures.Client(Broken(), "http://server")
    with pytest.raises(failures.StoreError, match="the MLflow store http://server cannot be used: refused") as caught:
        client.act(ConnectionError("refused"))
    assert isinstance(caught.value, SetupError) and failures.may_pass(caught.value) and client.where == "here"
    with pytest.raises(TypeError, match="a fault of the program"):
        client.act(TypeError("a fault of the program"))
    denied = ConnectionError("who are you")
    denied.error_code = "PERMISSION_DENIED"  # type: ignore[attr-defined]
    with pytest.raises(failures.StoreError, match="who are you") as caught:
        client.act(denied)
    assert not failures.may_pass(caught.value) and not failures.may_pass(SetupError("cannot write a file"))
