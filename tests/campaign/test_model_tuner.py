"""Tuning by predicted time, with the real compiler: no configuration is executed."""

import pytest

from kernel_scientist import problems
from kernel_scientist.campaign.tuning.model_tuner import ModelTuner
from kernel_scientist.compile.source import KernelSource
from kernel_scientist.gpu.capture.preview import Previewer
from kernel_scientist.hardware import gpus
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.records.params import Harness
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

PROBLEM = problems.find("rmsnorm")
CASES = PROBLEM.profile("full").benchmarks[:2]
SEED = (ROOT / "problems/rmsnorm/seeds/triton_tiled.py").read_text()


def tune(
    source: str, tries: int = 12, inspect_timeout_s: float = 120.0, is_tried: bool = False, stop: bool = False
) -> Kernel | None:
    previewer = Previewer(PROBLEM, gpus.MI300X, Harness(inspect_timeout_s=inspect_timeout_s))
    base = Kernel(name="k00001", language="triton", source=source)
    return ModelTuner(previewer, CASES, base, tries, lambda _: is_tried, lambda: stop).tune("k00002")


@pytest.fixture(scope="module")
def slow() -> str:
    """The seed with one value set badly."""
    name, worst = "BLOCK_COLS", 512
    assert name in KernelSource(SEED).tunables
    source = KernelSource(SEED).with_tunables({name: worst}).text
    assert source != SEED
    return source


def test_only_a_gain_is_entered_and_it_gains_on_every_case_together(slow: str) -> None:
    tuned = tune(slow)
    assert tuned is not None and tuned.tuned_from == tuned.base == "k00001"
    gains = [one.log2_ratio for one in tuned.tries if one.log2_ratio is not None]
    assert gains and max(gains) > 0.01 and len(tuned.tries) <= 12
    again = tune(tuned.source, tries=40)
    assert again is None or again.source != slow


def test_nothing_is_entered_if_nothing_gains_or_everything_was_tried(slow: str) -> None:
    assert tune(slow, is_tried=True) is None
    assert tune(slow, stop=True) is None


def test_a_base_whose_inspection_takes_too_long_is_not_tuned(slow: str) -> None:
    assert tune(slow + "# not inspected before\n", inspect_timeout_s=0.01) is None
