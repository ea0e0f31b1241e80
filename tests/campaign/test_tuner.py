"""Tuning by measured time, with the real evaluator."""

import contextlib
import itertools
from collections.abc import Iterator

import pytest

from kernel_scientist import problems
from kernel_scientist.campaign import configurations
from kernel_scientist.campaign.evaluation_context import EvaluationContext
from kernel_scientist.campaign.targets.local import Local
from kernel_scientist.campaign.tuning import tuner
from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.hardware.addresses import resolve
from kernel_scientist.records.kernel import Kernel, Try, Verdict
from kernel_scientist.records.params import Params
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT


@pytest.fixture
def context(pool: WorkerPool) -> EvaluationContext:
    problem = problems.load(ROOT / "problems" / "identity")
    params = Params.model_validate(
        {"problem": "identity", "profile": "cpu", "harness": pool.harness, "tuning": {"tries": 3}}
    )
    evaluator = Evaluator(problem, "cpu", pool.harness, pool)
    return EvaluationContext(params, problem, Local(params, problem, resolve("cpu", "cpp"), evaluator))


def test_a_long_tuning_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    monkeypatch.setattr(tuner.progress, "info", lambda text, *values: said.append(text % values))
    clock = itertools.chain([0.0, 10.0, 40.0, 50.0, 71.0])
    monkeypatch.setattr(tuner.time, "monotonic", lambda: next(clock))
    shown = tuner.TuningProgress(Kernel(name="k00001", language="cpp", source=""), 12)
    for gain in (None, -1.0, 1.0, 0.5):
        shown.done(Try(values={}, source="", verdict=Verdict.OK, reason="", log2_ratio=gain, seconds=1.0))
    assert said == [
        "tuning k00001: at most 12 configurations",
        "tuning k00001: 2 of at most 12 done, none is faster",
        "tuning k00001: 4 of at most 12 done, the best is 2.000x as fast",
    ]


@pytest.mark.alone
def test_a_kernel_is_tuned_by_measured_time(context: EvaluationContext, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
import time
TUNABLES = {"PAUSE_MS": 2}
CHOICES = {"PAUSE_MS": [0, 2, -1]}

def custom_kernel(data):
    if TUNABLES["PAUSE_MS"] < 0:
        return data[1].zero_()
    time.sleep(TUNABLES["PAUSE_MS"] / 1000)
    return data[1].copy_(data[0])
"""
    locked: list[bool] = []

    @contextlib.contextmanager
    def device(_: EvaluationContext, purpose: str) -> Iterator[None]:
        locked.append(True)
        yield

    monkeypatch.setattr(EvaluationContext, "device", device)
    base = Kernel(name="k00001", language="cpp", source=source)
    search = configurations.search(context, base, "k00002", lambda _: False, lambda: False, 60.0)
    tuned = tuner.tune(context.target, search)
    assert tuned is not None and tuned.tuned_from == tuned.base == "k00001"
    assert KernelSource(tuned.source).tunables == {"PAUSE_MS": 0} and "PAUSE_MS 0" in tuned.report
    outcomes = {t.values["PAUSE_MS"]: t for t in tuned.tries}
    assert outcomes[-1].verdict is Verdict.INCORRECT and outcomes[-1].log2_ratio is None
    assert (outcomes[0].log2_ratio or 0) > 1 and len(locked) == 1  # an incorrect configuration is not timed
