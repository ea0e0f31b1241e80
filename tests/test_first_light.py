"""First light as far as it can be shown without a GPU: steps on the stand-in, and what is left by those that fail."""

import importlib
import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.first_light import __main__ as first_light
from benchmarks.first_light import sandboxed, starting
from benchmarks.first_light.here import Here
from benchmarks.first_light.outcome import StepError
from benchmarks.first_light.results import Results
from benchmarks.parts import Done, bounded
from kernel_scientist.calibrate import history, measure
from tests.calibrate.measurements import MI300X, calibration
from tests.conftest import ROOT, dedent


def test_without_a_gpu_it_is_one_sentence() -> None:
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "benchmarks.first_light"]
    said = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert said.returncode == 2 and said.stdout.count("\n") == 1 and "no GPU" in said.stdout and not said.stderr


def test_all_steps_together_take_less_than_ten_minutes() -> None:
    assert sum(limit_s for _, limit_s in first_light.STEPS.values()) < first_light.BOUND_S < 600
    for place, _ in first_light.STEPS.values():
        module, _, function = place.partition(".")
        assert callable(getattr(importlib.import_module(f"benchmarks.first_light.{module}"), function))


@pytest.mark.slow
def test_each_step_leaves_its_own_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = ["torch", "events", "lock", "sweep", "calibration"]
    with Results(tmp_path, archived=False) as results:
        assert first_light.run(results, "standin", steps, "", time.monotonic() + first_light.BOUND_S) == 0
    left = {name: read(tmp_path, name) for name in steps}
    assert sorted(path.name for path in tmp_path.glob("*.json")) == [
        *("02-torch.json", "06-events.json", "07-sweep.json", "16-lock.json", "17-calibration.json")
    ]
    assert [left[name]["outcome"] for name in steps] == [*["passed"] * 4, "not here"]
    assert left["events"]["found"]["record_ns"] > 0 and left["sweep"]["found"]["sweep of 512 MiB"]["cold_us"] > 0
    assert "FACT" in (tmp_path / "16-lock.txt").read_text() and capsys.readouterr().out.count("\n") == 6


def test_the_calibration_is_that_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    made = calibration()
    monkeypatch.setattr(measure, "present", lambda: MI300X)
    monkeypatch.setattr(history, "calibrate", lambda *_: made)
    fit, times, rest = starting.calibration(Here(standin=False))
    assert times == {"measured_us": {"a": 1.0}}
    assert fit["rho"] == made.fit.rho and rest == {"timed": 1, "dropped": {"b": "wrong"}, "calibration_s": 200.0}


def test_a_step_that_fails_hides_nothing(tmp_path: Path) -> None:
    with Results(tmp_path, archived=False) as results:
        assert first_light.run(results, "standin", ["lock", "torch"], "", time.monotonic()) == 1
    assert read(tmp_path, "lock")["reason"] == read(tmp_path, "torch")["reason"] == "not finished after 0 s"
    killed = first_light.result(Done(None, 9.0, 'FACT {"a": 1}\nbusy\nFACT {"b": 2}\n'), 9)
    assert killed["found"] == {"a": 1, "b": 2} and killed["reason"] == "not finished after 9 s"
    broken = first_light.result(Done(-11, 1.0, 'FACT {"a": 1}\n'), 9)
    assert (broken["outcome"], broken["reason"]) == ("failed", "its process ended with exit status -11")


def test_little_comes_back_and_is_whole_after_every_step(tmp_path: Path) -> None:
    """From some machines only a few files come back, and it may end at any time."""
    for name in ("01-a", "02-b"):
        with Results(tmp_path, archived=True) as results:
            results.add(name, {"step": name, "machine": {"device": "x"}}, "begin" + "." * 5000 + "end")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.jsonl", "steps.tar.gz"]
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == ["01-a", "02-b"] and lines[0]["machine"] == {"device": "x"}
    assert len(lines[0]["output"]) == 4000 and lines[0]["output"].endswith("end")
    with tarfile.open(tmp_path / "steps.tar.gz") as archive:
        assert archive.getnames() == ["01-a.json", "01-a.txt", "02-b.json", "02-b.txt"]


def test_output_that_is_no_text_ends_nothing() -> None:
    done = bounded([sys.executable, "-c", r"import sys; sys.stdout.buffer.write(b'a\xffb')"], 60)
    assert done.status == 0 and done.output == "a\N{REPLACEMENT CHARACTER}b"
    assert first_light.result(Done(-9, 1.0, 'FACT {"a": 1}\nFACT {"b": '), 9)["found"] == {"a": 1}


def test_the_layer_that_refuses_something_is_named() -> None:
    """A driver that would open a socket, which the filter of system calls refuses."""
    source = """
        import socket

        def custom_kernel(data):
            x, out = data
            socket.socket(socket.AF_UNIX).close()
            return out.copy_(x)
        """
    found: dict[str, Any] = {}
    with pytest.raises(StepError, match=r"only without 'system calls': .*Permission"):
        for facts in sandboxed.refusing(Here(standin=True), dedent(source)):
            found |= facts
    assert "Permission" in found["with every layer"] and found["without"] == "system calls"


def read(folder: Path, name: str) -> dict[str, Any]:
    (path,) = folder.glob(f"*-{name}.json")
    return json.loads(path.read_text())
