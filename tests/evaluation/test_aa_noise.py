"""The margin comes from A/A runs on this machine, is kept for a day, and is never below the one in the parameters."""

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.evaluation.timing import aa_noise
from kernel_scientist.records import environment
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import device_lock
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerPool]:
    monkeypatch.setenv("KERNEL_SCIENTIST_CACHE", str(tmp_path))
    with WorkerPool(Harness(noise_runs=2, blocks=4, stages=2, margin=0.001)) as pool:
        yield pool


def evaluator(shop: WorkerPool) -> Evaluator:
    return Evaluator(problems.load(ROOT / "problems/rmsnorm"), "cpu", shop.harness, shop)


@pytest.mark.slow
def test_noise_is_measured_once_a_day(shop: WorkerPool) -> None:
    first = evaluator(shop).margins
    assert len(first) == 2 and all(0.001 <= margin < 10 for margin in first)
    (file,) = (environment.host_folder() / "noise").glob("*.json")
    file.write_text(json.dumps({"margins": [0.025, 0.0001]}))
    assert evaluator(shop).margins == (0.025, 0.001)
    yesterday = time.time() - 25 * 3600
    os.utime(file, (yesterday, yesterday))
    assert evaluator(shop).margins[0] != 0.025


@pytest.mark.slow
def test_the_device_is_free_between_two_runs_and_other_evaluators_need_no_second_measurement(
    shop: WorkerPool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aa_noise, "TOLD_S", 0.0)
    caplog.set_level("WARNING", "kernel_scientist.progress")
    held = list[str]()

    @contextlib.contextmanager
    def hold() -> Iterator[None]:
        held.append("taken")
        yield
        held.append("free")

    evaluator(shop).measure_machine(hold)
    assert held == ["taken", "free"] * 3, "for the peaks, and for each of two A/A runs"
    assert "this machine's noise: 1 of 2 A/A runs after " in caplog.text
    evaluator(shop).measure_machine(hold)
    assert len(held) == 6 and not evaluator(shop).noise_is_due()


@pytest.mark.slow
def test_a_timing_does_not_wait_for_a_process_that_waits_for_its_device(shop: WorkerPool) -> None:
    own = evaluator(shop)
    with device_lock.turn(aa_noise._file(own.driver, "cpu"), threading.Event()):
        assert len(own.margins) == 2 and not evaluator(shop).noise_is_due()


@pytest.mark.slow
def test_noise_that_is_not_needed_is_not_measured_but_heeded_if_known(shop: WorkerPool) -> None:
    first = evaluator(shop)
    assert first.noise_is_due()
    first.forgo_noise()
    assert first.margins == (0.001, 0.001) and not first.noise_is_due()
    assert not first.machine_is_due(), "nor are peaks measured for who waits for one kernel"
    assert not (environment.host_folder() / "noise").exists()
    assert evaluator(shop).margins[0] > 0
    (file,) = (environment.host_folder() / "noise").glob("*.json")
    file.write_text(json.dumps({"margins": [0.025, 0.0001]}))
    second = evaluator(shop)
    second.forgo_noise()
    assert second.margins == (0.025, 0.001)


def test_without_runs_the_margin_is_the_parameters(shop: WorkerPool) -> None:
    shop.harness = shop.harness.model_copy(update={"noise_runs": 0})
    assert evaluator(shop).margins == (0.001, 0.001)
    assert not (environment.host_folder() / "noise").exists()


@pytest.mark.slow
@pytest.mark.parametrize("least", [1, 2], ids=["enough runs", "too few runs"])
def test_noise_is_measured_no_longer_than_its_share_of_the_budget(
    shop: WorkerPool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    monkeypatch.setattr(aa_noise, "LEAST_RUNS", least)
    caplog.set_level("WARNING", "kernel_scientist.progress")
    own = evaluator(shop)
    own.noise_limit_s = 1e-3
    held = list[int]()

    @contextlib.contextmanager
    def hold() -> Iterator[None]:
        held.append(1)
        yield

    monkeypatch.setattr(own, "_peaks_tried", True)
    own.measure_machine(hold)
    assert len(held) == 1 and "ended early: 1 of 2 A/A runs" in caplog.text
    assert not own.noise_is_due() and not (environment.host_folder() / "noise").exists()
    assert ("they count" in caplog.text) == (least == 1) and all(margin >= 0.001 for margin in own.margins)
    assert least == 1 or (own.margins == (0.001, 0.001) and "harness.margin applies" in caplog.text)
    assert not own.with_harness(shop.harness).noise_is_due(), "nor is it measured again for other settings"
    assert evaluator(shop).noise_is_due(), "but for others, who may have more time"
