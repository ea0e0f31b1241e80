"""Calibrations: made, stored, shown by the command."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.calibrate import history, measure, suite, times
from kernel_scientist.gpu.model import constants
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.hardware import gpus
from kernel_scientist.records.errors import SetupError
from tests.calibrate.measurements import MI300X, calibration, points
from tests.conftest import lab_environment

FITTED = ("rho", "error", "families", "constants")
PROGRAM = (
    "from kernel_scientist.cli import main; from kernel_scientist.cli.machine import calibrate; "
    "main.add_command(calibrate); main()"
)


@pytest.fixture
def root(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    return lab


def test_a_calibration_is_kept_and_used(root: Path) -> None:
    assert history.last("mi300x") is None and constants.of("MI300X").kind == "published"
    assert constants.of("h100") == Constants()
    history.keep(calibration())
    assert history.last("mi300x") == calibration()
    used = constants.of("MI300X")
    assert (used.kind, used.calibrated) == ("measured here", "AMD Instinct MI300X, 2026-11-21")
    assert used.hbm == calibration().fit.constants["hbm"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"constants": {"hbm": 1, "of": 2}}', '{"constants": {"hbm": 0.5}}'])
def test_a_file_that_is_no_calibration_is_one_sentence(root: Path, text: str) -> None:
    constants.path("h100").parent.mkdir(parents=True)
    constants.path("h100").write_text(text)
    with pytest.raises(
        SetupError, match=r"h100.json is no calibration: .*; remove it or run `kernel-scientist calibrate`"
    ):
        history.last("h100")


def cli(lab: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = lab_environment(lab, CUDA_VISIBLE_DEVICES="", HIP_VISIBLE_DEVICES="")
    command = [sys.executable, "-c", PROGRAM, "calibrate", *arguments]
    return subprocess.run(command, cwd=lab, env=env, capture_output=True, text=True)


@pytest.mark.slow
def test_without_a_gpu_the_command_tells_of_the_last_calibrations(root: Path) -> None:
    history.keep(calibration())
    said = cli(root)
    assert said.returncode == 0 and "torch finds no GPU here" in said.stdout.splitlines()[0]
    lines = {name: line for line in said.stdout.splitlines() for name in line.split() if name in gpus.GPUS}
    assert set(lines) == set(gpus.GPUS)
    assert "2026-11-21" in lines["mi300x"] and "AMD Instinct MI300X" in lines["mi300x"]
    assert "measured here" in lines["mi300x"] and "published" in lines["mi325x"] and "datasheet" in lines["h100"]
    told = json.loads(cli(root, "--json", "--machine", "MI300X").stdout)
    (row,) = told["machines"]
    assert row["device"] == "AMD Instinct MI300X, driver 6.12"
    assert told["gpu"] is None and row["machine"] == "mi300x" and row["rho"] == calibration().fit.rho
    assert "datasheet" in cli(root, "--machine", "h200").stdout


@pytest.mark.slow
def test_the_commands_mistakes_are_one_sentence(root: Path) -> None:
    constants.path("h100").parent.mkdir(parents=True)
    constants.path("h100").write_text("{")
    for arguments, words in ((("--machine", "tpu"), "unknown machine 'tpu'"), ((), "h100.json is no calibration")):
        said = cli(root, *arguments)
        assert said.returncode == 2 and words in said.stderr and "Traceback" not in said.stderr


def test_a_gpu_is_known_by_its_drivers_name_or_by_ours() -> None:
    assert measure.known(MI300X).name == "MI300X"
    other = MI300X.model_copy(update={"name": "NVIDIA GeForce RTX 4090"})
    with pytest.raises(
        SetupError, match=r"'NVIDIA GeForce RTX 4090', is not in the table of machines \(mi300x, .*--machine"
    ):
        measure.known(other)
    assert measure.known(MI300X.model_copy(update={"name": ""}), "mi325x").name == "MI325X"
    with pytest.raises(SetupError, match="is MI300X, not H100"):
        measure.known(MI300X, "h100")


def test_too_few_times_are_no_calibration(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpus.named("mi300x")
    monkeypatch.setattr(
        history.features, "features", lambda entries, _: history.features.Features({}, {entries[0].name: "no"})
    )
    monkeypatch.setattr(history.features, "missing", lambda *_: 0)
    monkeypatch.setattr(history.measure, "measure", lambda *_: None)
    with pytest.raises(SetupError, match=r"only 0 of \d+ kernels could be timed; .*: no"):
        history.calibrate(MI300X, gpu, lambda words: None)
    assert not constants.path("mi300x").exists()


def test_a_calibration_from_end_to_end_with_the_models_own_times(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, every = gpus.named("mi300x"), points(0.01)
    entries = [suite.CalibrationKernel(p.family, p.case, p.name, "", {}) for p in every]
    measured = {
        p.name: times.MeasuredTime(name=p.name, time_us=p.time_us, interval_us=(1.0, 2.0), calls=36, left_out=0)
        for p in every
    }
    monkeypatch.setattr(history.suite, "entries", lambda _: tuple(entries))
    loads = {p.name: list(p.loads) for p in every}
    monkeypatch.setattr(history.features, "features", lambda *_: history.features.Features(loads, {}))
    monkeypatch.setattr(history.features, "missing", lambda *_: 0)

    def measure_all(*arguments: Any) -> None:
        for one in measured.values():
            arguments[-1](one)

    monkeypatch.setattr(history.measure, "measure", measure_all)
    said: list[str] = []
    found = history.calibrate(MI300X, gpu, said.append)
    assert found.fit.met and history.last("mi300x") == found and len(said) == 3
    file = constants.path("mi300x").with_suffix(".jsonl")
    cut = file.read_text()[:-20]  # a run that was ended while it wrote a line
    file.write_text(cut)
    again = history.fitted(times.read(file), said.append)
    assert len(again.measured) == len(measured) - 1 and again.device == MI300X and again.fit.rho
    file.write_text("{}\n")
    with pytest.raises(SetupError, match="is no file of times"):
        times.read(file)


def test_there_is_no_model_of_a_gpu_whose_code_is_not_executed_here() -> None:
    with pytest.raises(SetupError, match="there is no model of H100"):
        measure.known(MI300X.model_copy(update={"name": "NVIDIA H100 80GB HBM3"}))


@pytest.mark.gpu
def test_the_whole_suite_on_the_gpu_at_hand(root: Path) -> None:
    found = measure.present()
    assert found is not None
    try:
        gpu = measure.known(found)
    except SetupError as error:
        pytest.skip(str(error))
    calibrated = history.calibrate(found, gpu, print, 150.0)
    assert len(calibrated.measured) >= 60 and not [w for w in calibrated.dropped.values() if w.startswith("wrong")]
    print(calibrated.fit.model_dump(include=set(FITTED)))
    assert constants.of(gpu.name).calibrated
