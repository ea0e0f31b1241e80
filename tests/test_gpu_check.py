"""`make gpu-check` as far as it can be tested without a GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gpu_check
from kernel_scientist.calibrate import measure
from tests.calibrate.measurements import MI300X, calibration
from tests.conftest import ROOT


def test_the_gpu_check_without_a_gpu_is_one_sentence() -> None:
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "benchmarks.gpu_check"]
    said = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert said.returncode == 2 and said.stdout.count("\n") == 1 and "no GPU" in said.stdout and not said.stderr


def test_a_part_of_the_gpu_check_is_bounded() -> None:
    done = gpu_check.bounded([sys.executable, "-c", "print('begun', flush=True); import time; time.sleep(60)"], 2)
    assert done.status is None and done.seconds < 20 and done.output == "begun\n"
    assert sum(gpu_check.BOUNDS_S.values()) < 600
    assert gpu_check.answer('compiling\n{"a": {"b": 1}}\n') == {"a": {"b": 1}} and gpu_check.answer("none") == {}


PROBLEMS = sorted(f.name for f in (ROOT / "problems").iterdir() if (f / "task.yml").exists())
PYTEST = """PASSED tests/test_seeds.py::test_one
SKIPPED [3] tests/cheats/test_gpu.py:91: not reached in the time that was given
FAILED tests/test_seeds.py::test_two - AssertionError
================= 1 failed, 1 passed, 700 deselected in 9.10s ==================
"""


def test_the_gpu_check_leaves_one_folder_with_a_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parts, but for what they run: a test fails, nothing bears a cheat's mark, one seed is never reached."""
    asked: list[list[str]] = []

    def bounded(command: list[str], seconds: float, **_: str) -> gpu_check.Done:
        asked.append(command)
        if "pytest" in command:
            return (
                gpu_check.Done(5, 1.0, "no tests ran in 0.1s\n")
                if any(word.startswith("tests/cheats") for word in command)
                else (gpu_check.Done(1, 9.5, PYTEST))
            )
        if "calibrate" in command:
            told = {"fit": calibration().fit.model_dump(mode="json"), "measured": [1, 2], "dropped": {}}
            return gpu_check.Done(0, 100.0, f"timing\n{json.dumps(told, indent=1)}\n")
        if "triton_tiled" in command[4]:
            return gpu_check.Done(None, 20.0, "begun")
        return gpu_check.Done(0, 3.0, json.dumps({"verdict": "ok", "geomean_us": 5.0}))

    monkeypatch.setattr(gpu_check, "bounded", bounded)
    monkeypatch.setattr(gpu_check, "RESULTS", tmp_path)
    monkeypatch.setattr(measure, "present", lambda: MI300X)
    monkeypatch.setattr(sys, "argv", ["gpu-check"])
    with pytest.raises(SystemExit) as ended:
        gpu_check.main()
    (folder,) = tmp_path.iterdir()
    assert ended.value.code == 1 and folder.name.startswith("gpu-amd-instinct-mi300x-20")
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["failed"] == ["tests", "suite"] and summary["device"]["name"] == MI300X.name
    parts = summary["parts"]
    assert parts["tests"]["tests"] == {"failed": 1, "passed": 1} and parts["tests"]["not_reached"] == 3
    assert parts["tests"]["failed"] == ["tests/test_seeds.py::test_two"] and parts["cheats"]["ok"]
    assert parts["calibration"]["figures"]["rho"] and parts["calibration"]["timed"] == 2
    assert [k["verdict"] for k in parts["suite"]["kernels"]] == ["ok", "no answer"] * len(PROBLEMS)
    assert {tuple(c[-3:-1]) for c in asked if "evaluate" in c} == {("--target", "rocm")}
    assert {f.name for f in folder.iterdir()} == {
        *("tests.txt", "cheats.txt", "calibration.txt", "suite.txt", "summary.json")
    }
    (calibrated,) = [command for command in asked if "calibrate" in command]
    assert str(folder / "times.jsonl") in calibrated and calibrated[calibrated.index("--seconds") + 1] == "150"
    monkeypatch.setattr(sys, "argv", ["gpu-check", "calibration", "--results", str(tmp_path / "x"), "--seconds", "105"])
    with pytest.raises(SystemExit) as ended:
        gpu_check.main()
    summary = json.loads((tmp_path / "x" / "summary.json").read_text())
    assert ended.value.code == 0 and summary["parts"].keys() == {"calibration"}
    assert summary["parts"]["calibration"]["bound_s"] == 105


ABSENT = ("prefect", "mlflow", "dvc", "litellm", "httpx", "httpx_sse", "optuna", "sqlalchemy", "hypothesis")
IMPORTS = """
import importlib, sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Absent())
importlib.import_module({name!r})
"""


@pytest.mark.parametrize("file", gpu_check.gpu_tests())
def test_a_gpus_tests_are_imported_without_what_only_campaigns_need(file: str) -> None:
    """A GPU's machine may have neither network nor these packages; one file that lacks one ends all of pytest."""
    program = IMPORTS.format(absent=ABSENT, name=file.removesuffix(".py").replace("/", "."))
    said = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr


def test_every_file_with_a_gpus_test_is_known() -> None:
    known = gpu_check.gpu_tests()
    assert "tests/cheats/test_gpu.py" in known and "tests/calibrate/test_calibrate.py" in known
    assert "tests/test_gpu_check.py" not in known
