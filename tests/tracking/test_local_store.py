"""A store in a folder: made whole by one process, at home where it was moved or copied to."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import load
from kernel_scientist.records.errors import SetupError
from kernel_scientist.tracking import local_store
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import ROOT
from tests.trials import trial

PROBLEM = load(ROOT / "problems" / "identity")
OPEN = """
import sys
from kernel_scientist.records import environment
environment.prepare()
from kernel_scientist.tracking.mlflow_store import MlflowStore
print(MlflowStore(sys.argv[1], "identity-cpu").experiment_id)
"""


def opening(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OPEN, f"sqlite:///{folder}/mlflow.db"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def files(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


@pytest.mark.slow
def test_a_kill_while_the_store_is_made_and_two_processes_after_it_leave_one_store(tmp_path: Path) -> None:
    killed = opening(tmp_path)
    while not list(tmp_path.glob("mlflow.db.part*")):
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.01)
    time.sleep(0.5)  # into the migrations
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "mlflow.db").exists()
    both = [opening(tmp_path) for _ in range(2)]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert said[0][0] == said[1][0] and not list(tmp_path.glob("*.part*"))


def logged(uri: str, *names: str) -> MlflowStore:
    store = MlflowStore(uri, "identity-cpu")
    run = store.latest() or store.start("a-campaign", {}, PROBLEM)
    for name in names:
        store.log(run, trial(name, 1.0), Population(), PROBLEM)
    return store


def kernels(store: MlflowStore) -> list[str]:
    run = store.latest()
    assert run is not None
    return [one.kernel.name for one in store.population(run)]


def test_a_store_is_read_and_written_where_it_was_moved_or_copied_to(tmp_path: Path, empty_store: Path) -> None:
    here, moved, copy = tmp_path / "a b", tmp_path / "moved", tmp_path / "copy"
    here.mkdir()
    shutil.copy(empty_store, here)
    before = logged(f"sqlite:///{here}/mlflow.db", "k00001")
    run = before.latest()
    assert run is not None
    before.register(run, trial("k00001", 1.0).kernel, "identity-cpp-cpu", True)
    here.rename(moved)
    assert kernels(logged(f"sqlite:///{moved}/mlflow.db", "k00002")) == ["k00001", "k00002"]
    shutil.copytree(moved, copy)
    original = files(moved)
    store = logged(f"sqlite:///{copy}/mlflow.db", "k00003")
    assert kernels(store) == ["k00001", "k00002", "k00003"]
    assert str(copy) in store.client.get_model_version_download_uri("identity-cpp-cpu", "1")
    assert files(moved) == original and not here.exists()
    assert kernels(MlflowStore(f"sqlite:///{moved}/mlflow.db", "identity-cpu")) == ["k00001", "k00002"]


def test_artifacts_that_somebody_keeps_elsewhere_stay_there(tmp_path: Path, empty_store: Path) -> None:
    shutil.copy(empty_store, tmp_path)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    elsewhere = tmp_path / "elsewhere" / "artifacts" / "1"
    elsewhere.mkdir(parents=True)
    store = MlflowStore(uri, "identity-cpu")
    store.client.create_experiment("theirs", artifact_location=elsewhere.as_uri())
    MlflowStore(uri, "identity-cpu")
    assert store.client.get_experiment_by_name("theirs").artifact_location == elsewhere.as_uri()


def test_a_store_that_cannot_be_written_to_is_named(tmp_path: Path, empty_store: Path) -> None:
    """Permissions do not bind root, so the test is in a mount of its own, as far as there are mounts."""
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    check = (
        "from kernel_scientist.tracking.local_store import require_writable\n"
        f"require_writable('sqlite:///{tmp_path}/mlflow.db')"
    )
    mounted = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path}"
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*command, mounted], capture_output=True).returncode:
        pytest.skip("this user can make no read-only mount")
    done = subprocess.run(
        [*command, f'{mounted} && exec {sys.executable} -c "{check}"'],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert "cannot write to the MLflow store" in done.stderr and "Read-only file system" in done.stderr
    with pytest.raises(SetupError, match="cannot be used"):
        (tmp_path / "mlflow.db").write_text("this is no database" * 100)
        local_store.require_writable(f"sqlite:///{tmp_path}/mlflow.db")
