"""A team's set-up on one machine: PostgreSQL if installed, a Prefect server with its services, MLflow, workers."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
from prefect.client.base import PrefectHttpxSyncClient

from tests.conftest import ROOT, lab_environment

T = TypeVar("T")
POSTGRES = Path("/usr/lib/postgresql/15/bin")
PREFECT = [sys.executable, "-m", "prefect"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(found: Callable[[], T | None], what: str, timeout_s: float = 240) -> T:
    """Return what `found` returns, once it returns something."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        with contextlib.suppress(httpx.HTTPError):
            if value := found():
                return value
        time.sleep(0.3)
    raise AssertionError(f"{what}: not in {timeout_s:g} s")


def ask(api: str, method: str, path: str, body: Any = None, **query: str) -> Any:
    """Return a Prefect server's answer, asked as its own clients ask: 503 (a database that is busy) is asked again."""
    with PrefectHttpxSyncClient(base_url=f"{api}/", timeout=60, enable_csrf_support=False) as client:
        answer = client.request(method, path, json=body, params=query)
        return answer.json() if answer.content else None


class Database:
    """A PostgreSQL server in a temporary folder. It refuses to run as root, who lends it to the user `postgres`."""

    def __init__(self) -> None:
        self.folder, self.port = Path(tempfile.mkdtemp(prefix="ks-postgres-")), free_port()
        self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        if self.user:
            shutil.chown(self.folder, "postgres", "postgres")
        data, log = str(self.folder / "data"), str(self.folder / "log")
        self._run("initdb", "-D", data, "-U", "lab", "--auth=trust", "--no-sync")
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} -c fsync=off"
        self._run("pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "start")
        for name in ("prefect", "mlflow"):
            self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "lab", name)

    def url(self, driver: str, name: str) -> str:
        return f"postgresql+{driver}://lab@127.0.0.1:{self.port}/{name}"

    def close(self) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self.user, str(POSTGRES / program), *arguments]
        subprocess.run(command, check=True, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


class Service:
    """Servers and workers; each process in a session of its own, its output in a file of the folder."""

    def __init__(self, folder: Path, lab: Path) -> None:
        self.folder, self.lab, self.processes = folder, lab, list[subprocess.Popen[bytes]]()
        self.database = Database() if POSTGRES.is_dir() else None
        port, self.mlflow = free_port(), f"http://127.0.0.1:{free_port()}"
        self.api = f"http://127.0.0.1:{port}/api"
        own = {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "2", "PREFECT_UI_API_URL": self.api}
        backend = f"sqlite:///{folder}/mlflow.db"
        if self.database:
            own["PREFECT_API_DATABASE_CONNECTION_URL"] = self.database.url("asyncpg", "prefect")
            backend = self.database.url("psycopg2", "mlflow")
        self.start("server", *PREFECT, "server", "start", "--port", str(port), **own)
        where = ["--host", "127.0.0.1", "--port", self.mlflow.rpartition(":")[2], "--workers", "1"]
        stores = ["--backend-store-uri", backend, "--artifacts-destination", str(folder / "artifacts")]
        self.start("mlflow", sys.executable, "-m", "mlflow", "server", *where, *stores)
        until(lambda: httpx.get(f"{self.api}/health").status_code == 200, "the Prefect server starts")

    def start(self, name: str, *command: str, cwd: Path | None = None, **environment: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=cwd or self.folder,
                env=self.environment(name, **environment),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def environment(self, home: str, **more: str) -> dict[str, str]:
        own = {"PREFECT_HOME": str(self.folder / home), "PREFECT_WORKER_QUERY_SECONDS": "2"}
        if home != "server":
            own["PREFECT_API_URL"] = self.api
        if home != "mlflow":
            own["MLFLOW_TRACKING_URI"] = self.mlflow
        return lab_environment(self.lab, **{**own, **more})

    def start_worker(self, pool: str, lab: Path | None = None, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker in this laboratory, which it knows by its working directory alone, or for the service's."""
        command = (*PREFECT, "worker", "start", "--pool", pool, "--type", "process")
        own = {"KERNEL_SCIENTIST_ROOT": ""} if lab else {}
        return self.start(f"worker-{pool}", *command, cwd=lab, **own, **environment)

    def prefect(self, *arguments: str) -> str:
        """Run Prefect's command line in the laboratory's folder."""
        done = subprocess.run(
            [*PREFECT, *arguments],
            cwd=self.lab,
            env=self.environment("client"),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def paste(self) -> int:
        """Paste the commands of docs/howto/team-server.md that deploy into a shell; return its exit code."""
        page = (ROOT / "docs/howto/team-server.md").read_text().partition("## Deployments")[2]
        commands = page.split("```")[1].replace("prefect worker start --pool lab", "")  # it would stay
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = self.environment("client", PATH=path)
        return subprocess.run(["bash", "-c", commands], cwd=self.lab, env=env).returncode

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return ask(self.api, "POST", path, body or {})

    def deployment(self, name: str) -> dict[str, Any]:
        return ask(self.api, "GET", f"deployments/name/{name}")

    def run(self, deployment: str, **parameters: Any) -> str:
        """Start a run of a deployment; return its id."""
        body = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
        return str(self.post(f"deployments/{self.deployment(deployment)['id']}/create_flow_run", body)["id"])

    def flow_run(self, run: str) -> dict[str, Any]:
        return ask(self.api, "GET", f"flow_runs/{run}")

    def ended(self, run: str, timeout_s: float = 240) -> dict[str, Any]:
        """Wait until a run has ended; return it."""

        def final() -> dict[str, Any] | None:
            found = self.flow_run(run)
            return found if found["state_type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED") else None

        return until(final, f"run {run} ends", timeout_s)

    def events(self, name: str) -> list[dict[str, Any]]:
        return self.post("events/filter", {"filter": {"event": {"name": [name]}}})["events"]

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a server or a worker, then the runs that it started: they have sessions of their own."""
        started = list[psutil.Process]()
        with contextlib.suppress(psutil.NoSuchProcess):
            started = psutil.Process(process.pid).children(recursive=True)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for child in started:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()

    def close(self) -> None:
        for process in self.processes:
            self.kill(process)
        if self.database:
            self.database.close()
