"""How much a result depends on the order in which matrix instructions add, in words."""

import pytest
import torch

from kernel_scientist.evaluation.correctness import summation
from kernel_scientist.records.evaluation import CodeObject, CompileReport


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (0.0, "the same result to the bit"),
        (0.5, "1 of 4 elements differ, by at most 1.2e-01 of the largest"),
        (1e9, "by at most 1.0e+00 of the largest"),
    ],
)
def test_the_difference_is_told_by_the_largest_element(change: float, words: str) -> None:
    one = torch.tensor([1.0, -2.0, 4.0, 0.0]).double()
    other = one.clone()
    other[3] += change
    assert words in summation.difference([one, torch.empty(0)], [other, torch.empty(0)])


def test_only_kernels_with_matrix_instructions_have_an_order() -> None:
    def report(**mfma: int) -> CompileReport:
        code = CodeObject(kernel="k", arch="gfx942", digest="", num_warps=4, vgpr=8, mfma=mfma)
        return CompileReport(ok=True, compiler="", objects=(code,))

    assert summation.matters(report(v_mfma_f32_16x16x16_f16=4))
    assert not summation.matters(report()) and not summation.matters(None)
