"""Seeds in Triton compute the same by gfx942's code in the machine and by Triton's interpreter, which knows no gfx942.

Where every order of a sum gives the same number, or there is no sum, the results agree to the bit. Elsewhere they may
be one unit in the last place of bf16 apart, where a sum in fp32 lies beside a tie, and beyond that:

- 2^-18 of the row's root mean square, for sums that cancel (`agreement.OF_SUMS`).
- 2^-8 of it in seeds that round to bf16 in between, because such a number may be a unit apart as well.

The interpreter knows no e4m3fnuz and truncates to bf16; `tests/interpreter` adds what it lacks, so every type is used.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kernel_scientist.gpu.machine import build
from kernel_scientist.records import environment
from tests.conftest import ROOT
from tests.gpu.machine import agreement

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent / "scripts" / "seeds_of_triton.py"
SEEDS = [f"{path.parts[-3]}-{path.stem}" for path in sorted((ROOT / "problems").glob("*/seeds/triton_*.py"))]
PRODUCTS = [name for name in SEEDS if "gemm" in name]
OF_ROUNDING = 2.0**-8
ROUNDED_BETWEEN = ("attention-prefill", "mla-decode", "moe")
"""Problems whose seeds round weights of a sum, or what a launch leaves to the next, to bf16."""
CASES = (0, 1)
Outputs = dict[str, list[torch.Tensor]]


def computed(by: str, folder: Path, **variables: str) -> Outputs:
    """Return what every seed computes, by seed, case and kind of inputs."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TRITON_CACHE_DIR": str(folder / "cache")}
    file = folder / f"{Path(by).stem}.pt"
    command = [sys.executable, str(SCRIPT), by, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env={**given, **variables})
    assert done.returncode == 0, done.stderr[-3000:]
    return torch.load(file)


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    machine = build.build(environment.cache_folder() / "machine")
    return computed(str(machine), tmp_path_factory.mktemp("executed"))


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    return computed("interpreter", tmp_path_factory.mktemp("interpreted"), TRITON_INTERPRET="1")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", SEEDS)
def test_a_seed_computes_what_the_interpreter_does(
    name: str, case: int, executed: Outputs, interpreted: Outputs
) -> None:
    got, want = executed[f"{name}-{case}"][0], interpreted[f"{name}-{case}"][0]
    assert want.isfinite().all() and want.any()
    if name.startswith("identity"):
        assert torch.equal(got, want)
        return
    wrong = agreement.apart(got, want, OF_ROUNDING if name.startswith(ROUNDED_BETWEEN) else agreement.OF_SUMS)
    assert not wrong.any(), (int(wrong.sum()), got[wrong][:3], want[wrong][:3])
    assert (got != want).float().mean() < 0.02, "few sums lie beside a tie"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_of_exact_sums_is_the_same_to_the_bit(
    name: str, case: int, executed: Outputs, interpreted: Outputs
) -> None:
    got, want = executed[f"{name}-{case}"][1], interpreted[f"{name}-{case}"][1]
    assert want.isfinite().all() and want.unique().numel() > 100
    assert torch.equal(got.view(torch.int16), want.view(torch.int16))
