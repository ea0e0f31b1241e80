"""`make chaos`: two campaigns are the first of a fresh folder, at once: neither store nor server exists."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_scientist.tracking.mlflow_store import MlflowStore
from kernel_scientist.tracking.subject import Subject
from tests.conftest import lab_environment, new_lab

CALL = ["optimize", "--json", "--set", "problem=identity", "--set", "search.generations=0", "--set", "harness.blocks=2"]
CALL += ["--set", "harness.stages=1", "--set", "validate.processes=1", "--set", "validate.blocks=2"]


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_two_first_campaigns_of_a_folder_both_end(tmp_path: Path) -> None:
    lab = new_lab(tmp_path / "lab")
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "kernel_scientist", *CALL],
            cwd=lab,
            env=lab_environment(lab),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=1100) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    names = {json.loads(out)["campaign"] for out, _ in said}
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    runs = store.campaigns(Subject("identity", "cpp", "cpu"), 10)
    assert len(names) == 2 and {run.campaign for run in runs} == names
    for run in runs:
        assert [trial.kernel.name for trial in store.population(run)] == ["k00001", "k00002"] and not run.running
