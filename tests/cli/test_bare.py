"""On a machine with a GPU, and without the packages of services: one kernel, its compilation, first light."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

BLOCKED = ("prefect", "mlflow", "dvc", "litellm", "optuna", "sqlalchemy")
BLOCKS = f"""
import sys


class Blocks:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ImportError(f"{{name}} is not there")
        return None


sys.meta_path.insert(0, Blocks())
"""


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment in which no process finds services' packages. Python imports `sitecustomize` at its start."""
    (tmp_path / "sitecustomize.py").write_text(BLOCKS)
    hidden = {"PREFECT_API_URL", "MLFLOW_TRACKING_URI"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}


def run(bare: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, env=bare, capture_output=True, text=True, check=False)


def test_they_are_not_there(bare: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", "import prefect"], env=bare, capture_output=True, text=True)
    assert done.returncode == 1 and "prefect is not there" in done.stderr


def test_one_kernel_is_evaluated(bare: dict[str, str]) -> None:
    seed, quick = "problems/identity/seeds/cpp_naive.py", ("stages=1", "blocks=2", "noise_runs=0")
    settings = [word for setting in quick for word in ("--set", f"harness.{setting}")]
    done = run(
        bare, "kernel_scientist", "evaluate", seed, "--problem", "identity", "--target", "cpu", *settings, "--json"
    )
    assert done.returncode == 0 and json.loads(done.stdout)["verdict"] == "ok", done.stderr


def test_a_kernel_is_compiled_for_a_gpu_that_is_not_here(bare: dict[str, str]) -> None:
    seed = "problems/identity/seeds/triton_naive.py"
    done = run(bare, "kernel_scientist", "compile", seed, "--problem", "identity", "--arch", "sm_90")
    assert done.returncode == 0 and "is not there" not in done.stdout + done.stderr, done.stdout + done.stderr


def test_first_light_takes_its_steps(bare: dict[str, str], tmp_path: Path) -> None:
    done = run(bare, "benchmarks.first_light", "--standin", "torch", "--results", str(tmp_path / "light"))
    assert done.returncode == 0 and json.loads((tmp_path / "light/all.jsonl").read_text())["outcome"] == "passed"
