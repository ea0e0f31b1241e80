"""Seeds in HIP compute the same by gfx942's code in the machine and compiled for the CPU, one fiber per lane.

Each lane adds in the same order in both; the code for gfx942 contracts products and sums, and expf is another one. So
results agree to the bit where sums are exact in fp32, and elsewhere within `agreement.OF_SUMS` and a unit of bf16.

Not covered: `hip_mfma.py`, which call builtins for matrix instructions. The conversion from fp8 is the header's own.
"""

from pathlib import Path

import pytest
import torch

from kernel_scientist import problems
from kernel_scientist.gpu.toolchains import hip
from tests.conftest import ROOT
from tests.gpu.machine import agreement, host_kernels
from tests.gpu.machine.executed_seeds import drivers, executed

TOOLS = hip.find()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))]

SEEDS = sorted((ROOT / "problems").glob("*/seeds/hip_naive.py"))
CASES = 2
"""Of each problem's checking cases: the first ones. A fiber is slow."""


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.parts[-3])
def test_a_seed_computes_what_its_text_says_in_cpp(path: Path, tmp_path: Path) -> None:
    problem = problems.find(path.parts[-3], "cpu")
    on_host = host_kernels.imported(path, tmp_path)
    with drivers(problem) as driver:
        calls = executed(driver, path, problem.profile("cpu").tests[:CASES], exact="gemm" in problem.name)
    for call in calls:
        want = on_host.custom_kernel(call.data)
        assert want.isfinite().all() and want.any()
        if call.exact or problem.name == "identity":
            assert torch.equal(call.output, want), call.case
        else:
            wrong = agreement.apart(call.output, want, agreement.OF_SUMS)
            assert not wrong.any(), (call.case, int(wrong.sum()), call.output[wrong][:3], want[wrong][:3])


def test_a_mistake_in_the_text_reaches_the_oracle(tmp_path: Path) -> None:
    text = (ROOT / "problems/softmax/seeds/hip_naive.py").read_text()
    path = tmp_path / "softmax.py"
    path.write_text(text.replace("WAVE / 2; step > 0", "WAVE / 4; step > 0"))  # half of a wave is left out
    problem = problems.find("softmax", "cpu")
    data = problem.generate(problem.profile("cpu").tests[1])
    output = host_kernels.imported(path, tmp_path).custom_kernel(data)
    assert not problem.check(data, output)[0]
