"""`make chaos`: everything that can die dies at random moments of a campaign; no kernel is lost or recorded twice.

A real Prefect server, two real workers, a real MLflow server over SQLite, a scripted model behind HTTP. The seed of the
moments is printed; `CHAOS_SEED` repeats it, `CHAOS_KERNELS` makes the campaign shorter.
"""

import contextlib
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from kernel_scientist.sandbox import bubblewrap, device_lock
from kernel_scientist.workers.worker_pool import FORK_SERVER
from tests.conftest import lab_environment, new_lab
from tests.flows.test_pool import Cluster
from tests.processes import fork_servers, processes_of
from tests.scientist.model_server import ModelServer, serving
from tests.scientist.scripted_campaign import NewPlans, settings
from tests.tracking.test_patience import Server

KERNELS = int(os.environ.get("CHAOS_KERNELS", "60"))
PAUSE_S = 2.0, 15.0
"""A fault happens so long after its share of the kernels is recorded, in seconds: the faults cover the campaign."""
KINDS = ("good", "good", "wrong", "good", "compile error", "good")


def survivors(house: "House") -> list[str]:
    cache = Path(os.environ["KERNEL_SCIENTIST_CACHE"])
    return [*processes_of(house.lab), *processes_of(house.prefect.folder), *fork_servers(cache)]


class House:
    """A laboratory in service, and what can go wrong there."""

    def __init__(self, folder: Path, empty_store: Path, model: ModelServer, rng: random.Random) -> None:
        self.rng, self.lab, self.model = rng, new_lab(folder / "lab"), model
        (self.lab / "mlruns").mkdir()
        self.database = Path(shutil.copy(empty_store, self.lab / "mlruns" / "mlflow.db"))
        self.mlflow, self.prefect = Server(self.lab / "mlruns"), Cluster(folder)
        self.workers = [self.prefect.start_worker(self.lab) for _ in range(2)]
        self.log = (folder / "campaign.log").open("w+")
        self.campaign = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start or resume the campaign: the same command each time."""
        changes = ("target=pool:lab", "search.generations=40", "llm.concurrency=4", f"budget.kernels={KERNELS}")
        command = [sys.executable, "-m", "kernel_scientist", "optimize", "--resume"]
        servers = {"PREFECT_API_URL": self.prefect.api, "MLFLOW_TRACKING_URI": self.mlflow.uri}
        return subprocess.Popen(
            [*command, *settings(self.model, *changes)],
            cwd=self.lab,
            env=lab_environment(self.lab, **servers),
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )

    def wait(self, seconds: float) -> int | None:
        """Return the campaign's exit code, or None if it goes on for so long.

        One that refuses to start because a server is away is started again, as a scheduler does.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if (code := self.campaign.poll()) in (2, 3):
                self.campaign = self.start()
            elif code is not None:
                return code
            time.sleep(0.5)
        return None

    def kernels(self) -> list[tuple[str, str]]:
        """The names and run ids of all kernels that are recorded, read from the database itself."""
        query = (
            "SELECT t.value, r.run_uuid FROM runs r JOIN tags t ON t.run_uuid = r.run_uuid AND t.key = 'kernel' "
            "WHERE r.status = 'FINISHED' AND r.lifecycle_stage = 'active' ORDER BY t.value"
        )
        with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=60)) as connection:
            return connection.execute(query).fetchall()

    def kill_the_campaign(self) -> None:
        os.killpg(self.campaign.pid, signal.SIGKILL)
        self.campaign.wait()
        self.campaign = self.start()

    def interrupt_the_campaign(self) -> None:
        os.killpg(self.campaign.pid, signal.SIGINT)
        assert self.campaign.wait(120) in (0, 130)
        self.campaign = self.start()

    def kill_a_worker(self) -> None:
        dead = self.workers.pop(self.rng.randrange(len(self.workers)))
        (os.killpg if self.rng.random() < 0.5 else os.kill)(dead.pid, signal.SIGKILL)  # its flow runs, too, or not
        dead.wait()
        self.workers.append(self.prefect.start_worker(self.lab))

    def kill_prefect(self) -> None:
        os.killpg(self.prefect.server.pid, signal.SIGKILL)
        self.prefect.server.wait()
        time.sleep(self.rng.uniform(0, 10))
        self.prefect.start_server()

    def kill_mlflow(self) -> None:
        self.mlflow.kill()
        time.sleep(self.rng.uniform(0, 10))
        self.mlflow.start()

    def fill_the_disk(self) -> None:
        """Let no file of the MLflow server grow: its database and artifacts are on a disk that is full."""
        servers = [psutil.Process(self.mlflow.process.pid)]
        servers += servers[0].children(recursive=True)
        for limit in (1, resource.RLIM_INFINITY):
            for server in servers:
                server.rlimit(psutil.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            time.sleep(self.rng.uniform(5, 15) if limit == 1 else 0)

    def lock_the_database(self) -> None:
        with contextlib.closing(sqlite3.connect(self.database, timeout=60, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            time.sleep(20)

    def close(self) -> None:
        for process in (self.campaign, *self.workers):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.prefect.close()
        self.mlflow.kill()

    def said(self) -> str:
        self.log.flush()
        return Path(self.log.name).read_text()


@pytest.fixture
def house(tmp_path: Path, empty_store: Path) -> Iterator[House]:
    seed = int(os.environ.get("CHAOS_SEED", time.time_ns() % 10**6))
    print(f"CHAOS_SEED={seed}")
    with serving(NewPlans(KINDS)) as model:
        found = House(tmp_path, empty_store, model, random.Random(seed))
        try:
            yield found
        finally:
            found.close()


@pytest.mark.soak
@pytest.mark.timeout(2400)
def test_whatever_dies_every_kernel_is_there_once(house: House) -> None:
    faults: list[Callable[[], None]] = [
        *(house.kill_the_campaign, house.kill_a_worker, house.kill_prefect, house.kill_mlflow),
        *(house.fill_the_disk, house.lock_the_database, house.interrupt_the_campaign, house.kill_a_worker),
    ]
    house.rng.shuffle(faults)
    before: set[tuple[str, str]] = set()
    for number, fault in enumerate(faults):
        until = time.monotonic() + 600
        while len(house.kernels()) < KERNELS * number // len(faults) and time.monotonic() < until:
            assert house.wait(1) in (None, 0), house.said()
        assert house.wait(house.rng.uniform(*PAUSE_S)) in (None, 0), house.said()
        before = set(house.kernels())
        print(f"{time.strftime('%X')} {len(before)} kernels; {fault.__name__}")
        fault()
        assert before <= set(house.kernels()), "a kernel that was recorded is gone"
    assert house.wait(1500) == 0, house.said()
    recorded = house.kernels()
    assert before <= set(recorded)
    assert [name for name, _ in recorded] == [f"k{number:05d}" for number in range(1, KERNELS + 1)]
    for worker in house.workers:
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)
    for name in ("cpu", "whole-cpu"):
        with device_lock.device(name, 30):
            pass
    house.close()
    bubblewrap.end_orphans(FORK_SERVER)  # as the next evaluator does
    until = time.monotonic() + 30
    while (left := survivors(house)) and time.monotonic() < until:
        time.sleep(0.5)
    assert not left
    print(house.said())
