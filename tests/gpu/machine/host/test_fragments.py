"""Products by rocWMMA's functions: every type and block, layouts of operands and sums; values against torch."""

import itertools

import pytest
import torch

from kernel_scientist.gpu.machine.allocations import Allocations
from kernel_scientist.gpu.toolchains import hip
from tests.gpu.machine.host.test_headers import loaded

TOOLS = hip.find()
pytestmark = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))

TYPES = {
    "float8_t": torch.float8_e4m3fnuz,
    "bfloat8_t": torch.float8_e5m2fnuz,
    "float16_t": torch.float16,
    "hfloat16_t": torch.float16,
    "bfloat16_t": torch.bfloat16,
    "float32_t": torch.float32,
}
BLOCKS = ((16, 64), (32, 32))
"""Rows and columns of a product, and its k: that of two or more matrix instructions."""
DEVICE = r"""
#include <rocwmma/rocwmma.hpp>
using namespace rocwmma;
template <typename T, int Block, int K, typename A, typename B, layout_t Out>
__global__ void multiply(const T* a, const T* b, float* c) {
  fragment<matrix_a, Block, Block, K, T, A> left;
  fragment<matrix_b, Block, Block, K, T, B> right;
  fragment<accumulator, Block, Block, K, float> sum;
  static_assert(sum.num_elements == Block * Block / 64);
  constexpr int stride = Block + 4;
  load_matrix_sync(sum, c, stride, Out);
  load_matrix_sync(left, a, std::is_same<A, row_major>::value ? K : Block);
  load_matrix_sync(right, b, std::is_same<B, row_major>::value ? Block : K);
  mma_sync(sum, left, right, sum);
  for (int i = 0; i < sum.num_elements; i++) sum.x[i] *= 2;
  synchronize_workgroup();
  store_matrix_sync(c, sum, stride, Out);
}
template <typename T, int Block, int K>
void each(const T* a, const T* b, float* c, bool rows) {
  auto of = rows ? &multiply<T, Block, K, row_major, col_major, mem_row_major>
                 : &multiply<T, Block, K, col_major, row_major, mem_col_major>;
  of<<<1, 64>>>(a, b, c);
}
template <typename T>
void product(torch::Tensor a, torch::Tensor b, torch::Tensor c, bool rows) {
  auto x = (const T*)a.data_ptr(), y = (const T*)b.data_ptr();
  c.size(0) == 16 ? each<T, 16, 64>(x, y, c.data_ptr<float>(), rows) : each<T, 32, 32>(x, y, c.data_ptr<float>(), rows);
}
"""
MADE = "\n".join(
    f"void of_{name}(torch::Tensor a, torch::Tensor b, torch::Tensor c, bool rows) "
    f"{{ product<{name}>(a, b, c, rows); }}"
    for name in TYPES
)
HOST = "\n".join(f"void of_{name}(torch::Tensor a, torch::Tensor b, torch::Tensor c, bool rows);" for name in TYPES)


def by_columns(x: torch.Tensor) -> torch.Tensor:
    """Return a matrix whose memory has columns one after the other."""
    kept = x.view(torch.uint8) if x.element_size() == 1 else x
    return kept.t().contiguous().view(x.dtype)


@pytest.mark.slow
def test_products_of_all_types_and_blocks() -> None:
    with Allocations((), (), 0xAB) as call:
        extension = loaded(call, HOST, DEVICE + MADE, tuple(f"of_{name}" for name in TYPES))
        for (name, dtype), (block, k), rows in itertools.product(TYPES.items(), BLOCKS, (True, False)):
            a, b = torch.randn(block, k).to(dtype), torch.randn(k, block).to(dtype)
            before, c = torch.randn(block, block), torch.full((block, block + 4), 7.0)
            inside = c[:, :block] if rows else c[:, :block].t()
            inside[:] = before
            operands = (a, by_columns(b)) if rows else (by_columns(a), b)
            getattr(extension, f"of_{name}")(*operands, c, rows)
            right = 2 * (before + a.float() @ b.float())
            assert torch.allclose(inside, right, rtol=1e-5, atol=1e-4), (name, block, rows)
            assert (c[:, block:] == 7).all()
