"""Tuning by predicted time, with the real compilers; the machine executes some workgroups of those in HIP."""

from collections.abc import Sequence

import pytest

from kernel_scientist import problems
from kernel_scientist.campaign.tuning.model_tuner import ModelTuner
from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.evaluation.predicted import PredictedEvaluator
from kernel_scientist.gpu.capture.preview import Previewer
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.hardware import gpus
from kernel_scientist.records.evaluation import Prediction
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.workers import prepared
from kernel_scientist.workers.worker_pool import WorkerPool
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

    def predict(kernel: Kernel, cases: Sequence[Case]) -> Sequence[Prediction]:
        return previewer.preview(kernel.source, cases, counts=True).predictions

    return ModelTuner(predict, CASES, base, tries, lambda _: is_tried, lambda: stop).tune("k00002")


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


COPY = """
import torch
from torch.utils.cpp_extension import load_inline

TUNABLES = {"STEPS": 4000, "LANES": 256}
CHOICES = {"STEPS": [4000, 0], "LANES": [256, 2048]}
DEVICE = r'''
#include <hip/hip_runtime.h>
__global__ __launch_bounds__(LANES) void copy_kernel(const unsigned short* x, unsigned short* out, int size) {
    int i = blockIdx.x * LANES + threadIdx.x;
    float idle = i;
    for (int n = 0; n < STEPS; ++n) asm volatile("v_exp_f32 %0, %0" : "+v"(idle));
    if (i < size) out[i] = x[i];
}
void copy(torch::Tensor x, torch::Tensor out) {
    int size = x.numel();
    copy_kernel<<<(size + LANES - 1) / LANES, LANES>>>(
        (const unsigned short*)x.data_ptr(), (unsigned short*)out.data_ptr(), size);
}
'''
module = load_inline(
    name="tuned_copy", cpp_sources=["void copy(torch::Tensor x, torch::Tensor out);"], cuda_sources=[DEVICE],
    functions=["copy"], extra_cuda_cflags=["-O3", *(f"-D{name}={value}" for name, value in TUNABLES.items())],
)


def custom_kernel(data):
    x, out = data
    module.copy(x, out)
    return out
"""


@pytest.mark.skipif(isinstance(hip.find(), str), reason=str(hip.find()))
def test_a_hip_kernels_configurations_are_counted_and_one_that_cannot_be_launched_is_named() -> None:
    problem, harness = problems.find("identity"), Harness(noise_runs=0)
    base = Kernel(name="k00001", language="hip", source=COPY)
    with WorkerPool(harness, "cpu", machine=prepared.simulated(problem, gpus.MI300X)) as pool:
        evaluator = PredictedEvaluator(problem, "auto", harness, pool, gpus.MI300X)
        cases = evaluator.profile.benchmarks[-2:]
        tuned = ModelTuner(evaluator.predict, cases, base, 12, lambda _: False, lambda: False).tune("k00002")
    assert tuned is not None and KernelSource(tuned.source).tunables == {"STEPS": 0, "LANES": 256}
    by_values = {(one.values.get("STEPS", 4000), one.values.get("LANES", 256)): one for one in tuned.tries}
    assert set(by_values) == {(0, 256), (4000, 2048), (0, 2048)}
    assert (by_values[0, 256].log2_ratio or 0) > 0.01
    for refused in (by_values[4000, 2048], by_values[0, 2048]):
        assert refused.verdict is not Verdict.OK and refused.log2_ratio is None and refused.reason
