"""The DVC pipeline in a real repository: it reproduces, and a second time does nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT, lab_environment

pytestmark = pytest.mark.slow

STAGES = ["cases", "baseline", "optimize", "validate", "report"]


def repository(lab: Path, problem: str, prefect_api: str) -> dict[str, str]:
    """Make a laboratory with the pipeline, under git and DVC; return the environment for its commands."""
    lab.mkdir()
    for name in ("problems", "reference-kernels", "knowledge", "flows", "tasks", "kernel_scientist"):
        shutil.copytree(ROOT / name, lab / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("dvc.yaml", ".dvcignore"):
        shutil.copy(ROOT / name, lab)
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    params |= {"problem": problem}
    params["search"] |= {"generations": 1, "experiments": 1}
    params["harness"] |= {"blocks": 6, "pairs": 0, "noise_runs": 0, "warmup_calls": 1}
    params["tuning"] |= {"tries": 0}
    params["validate"] |= {"processes": 2, "blocks": 3}
    (lab / "params.yaml").write_text(yaml.safe_dump(params))
    env = lab_environment(
        lab, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", PYTHONPATH=str(lab)
    )
    env["PREFECT_API_URL"] = prefect_api
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # .pyc files must not make a stage run again
    subprocess.run(["git", "init", "-q"], cwd=lab, check=True)
    subprocess.run(["dvc", "init", "-q"], cwd=lab, check=True, env=env)
    return env


def test_the_pipeline_reproduces_and_the_second_time_does_nothing(tmp_path: Path, prefect_api: str) -> None:
    lab = tmp_path / "lab"
    env = repository(lab, "identity", prefect_api)
    # `validate` demands what the campaign did: with several seeds, that depends on which one happens to be the fastest
    (lab / "problems/identity/seeds/cpp_naive.py").unlink()

    def dvc(*arguments: str) -> str:
        done = subprocess.run(["dvc", *arguments], cwd=lab, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    first = dvc("repro")
    assert all(f"Running stage '{stage}'" in first for stage in STAGES)
    assert "champion is faster by" in first and "make ui" in first
    lock = (lab / "dvc.lock").read_text()
    assert set(yaml.safe_load(lock)["stages"]) == set(STAGES)
    later = lab / "champions/identity/campaigns/a-later-campaign/kernel.py"
    later.parent.mkdir()
    later.write_text("# campaigns outside the pipeline make no stage run again")
    again = dvc("repro")
    assert not any(f"Running stage '{stage}'" in again for stage in STAGES)
    assert (lab / "dvc.lock").read_text() == lock

    baseline = json.loads((lab / "reports/baseline.json").read_text())
    assert [s["kernel"] for s in baseline["seeds"]] == ["cpp_blocked"] and baseline["frozen_cases"] == 4
    optimized = json.loads((lab / "reports/optimize.json").read_text())
    assert optimized["kernels"] == 2
    card = json.loads((lab / "reports/champion/card.json").read_text())
    assert card == json.loads((lab / "champions/identity/cpp-cpu/card.json").read_text())
    validated = json.loads((lab / "reports/validate.json").read_text())
    assert validated["digest"] == card["digest"] and validated["recorded"] == optimized["campaign"]
    assert validated["status"] == optimized["status"] and f"recorded by campaign {optimized['campaign']}" in first
    assert card["kernel"] == optimized["champion"] and card["campaign"] == optimized["campaign"]
    page = (lab / "reports/report.html").read_text()
    assert optimized["campaign"] in page and "custom_kernel" in page and "<svg" in page
    shown = json.loads(dvc("metrics", "show", "--json"))[""]["data"]
    assert list(shown) == ["reports/metrics.json"]
    assert shown["reports/metrics.json"]["data"]["speedup_low"] > 0, "the speedup itself is stated if it is resolved"
    assert len(shown["reports/metrics.json"]["data"]) <= 12, "what one decides by"
    plots = dvc("plots", "show")
    assert "index.html" in plots and (lab / "dvc_plots/index.html").stat().st_size > 0
    shutil.rmtree(lab / "reports")
    assert "Running stage" not in dvc("checkout") and (lab / "reports/report.html").exists()

    frozen = next((lab / "data/cases").glob("*.pt"))
    frozen.unlink()
    done = subprocess.run(
        [sys.executable, "-m", "kernel_scientist", "baseline"],
        cwd=lab,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "is missing: run `dvc repro cases`" in done.stderr


@pytest.mark.timeout(600)  # five stages, one process each
def test_a_kernelbench_file_goes_through_the_pipeline(tmp_path: Path, prefect_api: str) -> None:
    """By `make run PROBLEM=...`. What changes in another problem repeats no measurement."""
    lab, name = tmp_path / "lab", "level1/2_Cross_entropy"
    env = repository(lab, "identity", prefect_api)
    (lab / "problems/level1").mkdir()
    shutil.copy(ROOT / f"tests/problems/kernelbench/{name}.py", lab / "problems/level1")
    for file in ("Makefile", "pyproject.toml", "constraints.txt", "install.py"):
        shutil.copy(ROOT / file, lab)
    (lab / ".venv").mkdir()
    (lab / ".venv/.installed").write_text(f"{lab.resolve()}\n")  # nothing is to be installed
    params = (lab / "params.yaml").read_text()

    def make(problem: str) -> subprocess.CompletedProcess[str]:
        command = ["make", "run", f"PROBLEM={problem}"]
        return subprocess.run(command, cwd=lab, env=env, capture_output=True, text=True)

    first = make(name)
    assert first.returncode == 0, first.stdout + first.stderr
    assert all(f"Running stage '{stage}'" in first.stdout for stage in STAGES)
    assert (lab / "params.yaml").read_text() == params
    card = json.loads((lab / f"champions/{name}/cpp-cpu/card.json").read_text())
    assert card["problem"] == name and card["campaign"] in (lab / "reports/report.html").read_text()

    other = lab / "problems/rmsnorm/task.yml"
    other.write_text(other.read_text() + "# a remark\n")
    again = make(name).stdout
    assert [stage for stage in STAGES if f"Running stage '{stage}'" in again] == ["cases"]
    refused = make("level1/nothing")
    assert refused.returncode == 2 and "known: attention-prefill" in refused.stdout and name in refused.stdout


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_params_yaml_is_put_back_after_a_run_that_was_stopped_or_killed(tmp_path: Path, number: signal.Signals) -> None:
    lab = tmp_path / "lab"
    (lab / "problems" / "other").mkdir(parents=True)
    (lab / "problems" / "other" / "task.yml").touch()
    for file in ("Makefile", "pyproject.toml", "constraints.txt", "install.py"):
        shutil.copy(ROOT / file, lab)
    (lab / ".venv").mkdir()
    (lab / ".venv/.installed").write_text(f"{lab.resolve()}\n")  # nothing is to be installed
    (lab / "params.yaml").write_text("problem: one  # a remark\ntarget: cpu\n")
    (lab / "dvc.yaml").write_text("stages:\n  wait:\n    cmd: cp params.yaml seen && sleep 600\n")
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["dvc", "init", "--no-scm", "-q"], cwd=lab, env=env, check=True)
    command = ["make", "run", "PROBLEM=other"]
    run = subprocess.Popen(command, cwd=lab, env=env, stderr=subprocess.DEVNULL, start_new_session=True)
    while not (lab / "seen").exists():
        assert run.poll() is None
        time.sleep(0.05)
    assert "problem: other  # a remark" in (lab / "seen").read_text()
    beside = subprocess.run(["make", "run"], cwd=lab, env=env, capture_output=True, text=True)
    assert beside.returncode == 2 and "make run is at work in this folder" in beside.stderr
    os.killpg(run.pid, number)
    run.wait()
    (lab / "dvc.yaml").write_text("stages: {}\n")
    after = subprocess.run(["make", "run"], cwd=lab, env=env, capture_output=True, text=True)
    assert ("params.yaml is put back" in after.stderr) == (number is signal.SIGKILL), after.stderr
    assert (lab / "params.yaml").read_text() == "problem: one  # a remark\ntarget: cpu\n"
