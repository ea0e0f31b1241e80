"""Kernels evaluated on the hosts of a work pool: a real Prefect server, real workers, processes killed at random."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import httpx
import psutil
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows import work_pool
from kernel_scientist.campaign.transport import PoolRequest
from kernel_scientist.problems.imports import dvc_digest
from kernel_scientist.records.errors import SetupError, StoppedError
from tests.conftest import ROOT, Cli, lab_environment, new_lab
from tests.flows.service import ask, until
from tests.scientist.model_server import serving
from tests.scientist.scripted_campaign import NewPlans, settings, stored

SEED = str(ROOT / "problems/identity/seeds/cpp_blocked.py")
PREFECT = [sys.executable, "-m", "prefect"]


class Cluster:
    """A Prefect server and workers of its pool `lab`, each with a home of its own as on hosts of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.workers = folder, list[subprocess.Popen[bytes]]()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.api = f"http://127.0.0.1:{self.port}/api"
        self.start_server()
        self._run("work-pool", "create", "--type", "process", "lab")

    def start_server(self) -> None:
        self.server = self._begin("server", "start", "--port", str(self.port), "--no-services", home="server")
        for _ in range(600):
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.api}/health").status_code == 200:
                    return
            time.sleep(0.1)
        raise AssertionError("the Prefect server did not start")

    def start_worker(self, lab: Path) -> subprocess.Popen[bytes]:
        """Start what an owner of a GPU starts, and nothing else."""
        worker = self._begin("worker", "start", "--pool", "lab", home=f"host{len(self.workers)}", lab=lab)
        self.workers.append(worker)
        return worker

    def close(self) -> None:
        for process in (*self.workers, self.server):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def runs(self) -> list[dict[str, object]]:
        return ask(self.api, "POST", "flow_runs/filter", {"limit": 200})

    def environment(self, home: str, lab: Path | None = None) -> dict[str, str]:
        own = {"PREFECT_HOME": str(self.folder / home), "PREFECT_API_URL": self.api, "KERNEL_SCIENTIST_TARGET": "cpu"}
        own |= {"PREFECT_WORKER_QUERY_SECONDS": "2", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
        return lab_environment(lab or self.folder, **own)

    def _begin(self, *arguments: str, home: str, lab: Path | None = None) -> subprocess.Popen[bytes]:
        with (self.folder / f"{home}.log").open("ab") as log:
            return subprocess.Popen(
                [*PREFECT, *arguments],
                cwd=self.folder,
                env=self.environment(home, lab),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _run(self, *arguments: str) -> None:
        subprocess.run(
            [*PREFECT, *arguments], env=self.environment("client"), check=True, capture_output=True, cwd=self.folder
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    yield found
    found.close()


def flow_process(worker: subprocess.Popen[bytes]) -> psutil.Process | None:
    """The process of a flow run that a worker has started, once it has processes of its own."""
    children = psutil.Process(worker.pid).children()
    return next((child for child in children if child.children()), None)


@pytest.mark.slow
def test_a_pool_that_the_server_does_not_know_is_named(lab: Path, cli: Cli, prefect_api: str) -> None:
    done = cli("evaluate", SEED, "--problem", "identity", "--target", "pool:nowhere", PREFECT_API_URL=prefect_api)
    assert done.returncode == 2 and "no work pool 'nowhere'" in done.stderr and "prefect worker start" in done.stderr
    done = cli("evaluate", SEED, "--problem", "identity", "--target", "pool:nowhere")
    assert done.returncode == 2 and "PREFECT_API_URL" in done.stderr


@pytest.mark.slow
def test_a_host_evaluates_a_kernel_and_one_with_another_problem_refuses(
    lab: Path, cli: Cli, cluster: Cluster, tmp_path: Path
) -> None:
    worker = cluster.start_worker(lab)
    arguments = ("evaluate", SEED, "--problem", "identity", "--target", "pool:lab", "--json")
    killed = list[int]()

    def kill() -> None:
        """Kill the first flow run that evaluates the kernel."""
        while not killed:
            runs = [run for run in cluster.runs() if run["name"] == "evaluate cpp_blocked"]
            if runs and runs[0]["state_type"] == "RUNNING" and (process := flow_process(worker)):
                killed.append(process.pid)
                process.kill()
            time.sleep(0.2)

    threading.Thread(target=kill, daemon=True).start()
    done = cli(*arguments, PREFECT_API_URL=cluster.api)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert killed and "it is sent again" in done.stderr
    assert result["verdict"] == "ok" and result["target"] == "pool-lab"
    assert result["environment"]["host"] == socket.gethostname() and result["speedup"]["ratio"] > 0
    names = [run["name"] for run in cluster.runs()]
    assert names.count("evaluate cpp_blocked") == 2 and names.count("describe the device") == 1

    cluster.close()
    cluster.start_server()
    other = new_lab(tmp_path / "other")
    with (other / "problems/identity/task.yml").open("a") as file:
        file.write("# another version\n")
    cluster.start_worker(other)
    done = cli(*arguments, PREFECT_API_URL=cluster.api)
    assert done.returncode == 2
    assert dvc_digest.of_folder(lab / "problems/identity") in done.stderr and "another version" not in done.stdout
    assert dvc_digest.of_folder(other / "problems/identity") in done.stderr


def test_a_deleted_flow_run_is_sent_again_and_a_deleted_deployment_is_named(prefect_api: str) -> None:
    name, request = "deleting", PoolRequest(operation="describe", params={}, problem_digest="", evaluator_digest="")
    errors = list[BaseException]()

    def send() -> None:
        with temporary_settings({PREFECT_API_URL: prefect_api}):
            try:
                pool.send(request, "describe")
            except (SetupError, StoppedError) as error:
                errors.append(error)

    def delete(seen: list[str]) -> list[str]:
        """Delete the flow runs of the pool; return the ids of all so far, once there is a new one."""
        wanted = {"work_pools": {"name": {"any_": [name]}}}
        runs = until(lambda: ask(prefect_api, "POST", "flow_runs/filter", wanted), "a flow run is made")
        for run in runs:
            ask(prefect_api, "DELETE", f"flow_runs/{run['id']}")
        return [*seen, *(run["id"] for run in runs)]

    with temporary_settings({PREFECT_API_URL: prefect_api}):
        ask(prefect_api, "POST", "work_pools/", {"name": name, "type": "process"})
        pool = work_pool.connect(name)
    sender = threading.Thread(target=send)
    sender.start()
    assert len(set(delete(delete([])))) == 2
    pool.stopped.set()
    sender.join(30)
    pool.stopped.clear()
    ask(prefect_api, "DELETE", f"deployments/{pool.deployment}")
    send()
    assert [type(error) for error in errors] == [StoppedError, SetupError] and f"for pool {name}" in str(errors[1])


def test_the_digest_of_a_problem_is_dvcs(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "problems/identity", tmp_path / "identity")
    (tmp_path / "identity/__pycache__").mkdir(exist_ok=True)
    (tmp_path / "identity/__pycache__/reference.pyc").write_bytes(b"no part of the problem")
    shutil.copy(ROOT / ".dvcignore", tmp_path)
    for command in (["git", "init", "-q"], ["dvc", "init", "-q"], ["dvc", "add", "-q", "identity"]):
        program = shutil.which(command[0], path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        subprocess.run([str(program), *command[1:]], cwd=tmp_path, check=True, capture_output=True)
    assert f"md5: {dvc_digest.of_folder(tmp_path / 'identity')}" in (tmp_path / "identity.dvc").read_text()


@pytest.mark.soak
@pytest.mark.timeout(2400)
def test_six_dead_workers_and_a_dead_server_lose_no_kernel(tmp_path: Path, cluster: Cluster) -> None:
    rng, lab = Random(19), new_lab(tmp_path / "lab")
    kinds = ("good", "good", "wrong", "good", "compile error", "good")
    workers = [cluster.start_worker(lab) for _ in range(2)]
    with serving(NewPlans(kinds)) as model:
        changes = ("target=pool:lab", "search.generations=20", "llm.concurrency=4", "budget.kernels=40")
        command = [sys.executable, "-m", "kernel_scientist", "optimize", "--json", *settings(model, *changes)]
        environment = {**lab_environment(lab), "PREFECT_API_URL": cluster.api}
        campaign = subprocess.Popen(
            command, cwd=lab, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for kill in range(7):
            with contextlib.suppress(subprocess.TimeoutExpired):
                campaign.wait(rng.uniform(20, 40))
            assert campaign.poll() is None, campaign.communicate()[1]
            if kill == 3:
                os.killpg(cluster.server.pid, signal.SIGKILL)
                cluster.server.wait()
                time.sleep(5)
                cluster.start_server()
                continue
            dead = workers.pop(rng.randrange(2))
            if kill % 2:
                os.kill(dead.pid, signal.SIGKILL)  # its flow run lives on
            else:
                os.killpg(dead.pid, signal.SIGKILL)
            dead.wait()
            time.sleep(rng.uniform(0, 5))
            workers.append(cluster.start_worker(lab))
        out, errors = campaign.communicate()
    assert campaign.returncode == 0, errors
    result = json.loads(out)
    _, children, _ = stored(lab, target="pool-lab")
    names = [run.data.tags["kernel"] for run in children]
    assert sorted(names) == [f"k{n:05d}" for n in range(1, 41)] and result["kernels"] == 40
    assert result["verdicts"]["infrastructure"] == 0 and len(result["cases"]) == 3
    assert any(run["name"] == f"confirm {result['champion']}" for run in cluster.runs())
