"""Types and functions of ROCm 6's headers, as kernels and host code use them; values against torch."""

from collections.abc import Iterator
from types import ModuleType

import pytest
import torch

from kernel_scientist.gpu.machine import build as machine_build
from kernel_scientist.gpu.machine import library as machine
from kernel_scientist.gpu.machine.allocations import Allocations
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.dispatch import KernelLaunch
from kernel_scientist.gpu.machine.host import build, library, module
from kernel_scientist.gpu.machine.host.session import Session
from kernel_scientist.gpu.machine.host.simulated import Simulated
from kernel_scientist.gpu.machine.launch import run
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.records import environment
from tests.gpu.machine.host.recorder import FACTS
from tests.gpu.machine.host.test_module import request

TOOLS = hip.find()
pytestmark = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))

FUNCTIONS = ("parts", "rounded", "narrowed", "added", "compared", "limits", "largest", "tiled")
HOST = "\n".join(f"torch::Tensor {name}(torch::Tensor x);" for name in FUNCTIONS)
DEVICE = r"""
#include <hip/amd_detail/amd_hip_fp16.h>
#include <hip/hip_bf16.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp8.h>
#include <hip/hip_math_constants.h>

#define BOTH __host__ __device__
BOTH float sum_of(__half2 pair) {
  __half first = pair.x;
  first *= __half(0.5f);
  return __half2float(first < first + first ? pair.x : pair.x + __half(0.0f)) - (float)pair.y;
}
__global__ void take_parts(const __half2* x, float* out) {
  __half2 pair = x[threadIdx.x];
  out[threadIdx.x] = sum_of(pair);
  pair.x = __hmax_nan(pair.y, pair.x);
  out[threadIdx.x + 64] = pair.x;
}
torch::Tensor parts(torch::Tensor x) {
  auto out = torch::empty({192}, x.options().dtype(torch::kFloat32));
  take_parts<<<1, 64>>>((const __half2*)x.data_ptr(), out.data_ptr<float>());
  for (int i = 0; i < 64; i++) out.data_ptr<float>()[128 + i] = sum_of(((const __half2*)x.data_ptr())[i]);
  return out;
}

__global__ void round_each(const float* x, float* out) {
  const int i = threadIdx.x;
  const __hip_bfloat16 a = x[i], b = x[i + 64], c = x[i + 128];
  auto sum = a * b + c;
  static_assert(sizeof(sum) == 2);
  out[i] = sum;
  sum += -a;
  out[i + 64] = sum++;
  out[i + 128] = hexp(__hip_bfloat162(sum, a).y);
  out[i + 192] = __hip_bfloat16((double)x[i] - 1e-12);
}
torch::Tensor rounded(torch::Tensor x) {
  auto out = torch::empty({256}, x.options());
  round_each<<<1, 64>>>(x.data_ptr<float>(), out.data_ptr<float>());
  return out;
}

BOTH void narrow(float x, unsigned char* out) {
  out[0] = __hip_fp8_e4m3_fnuz(x).__x;
  out[1] = __hip_fp8_e5m2_fnuz(x).__x;
  out[2] = __hip_cvt_float_to_fp8(x, __HIP_NOSAT, __HIP_E4M3_FNUZ);
  using Five = __hip_fp8_e5m2_fnuz;
  out[3] = __hip_cvt_double_to_fp8(x, Five::__default_saturation, Five::__default_interpret);
  out[4] = __hip_cvt_halfraw2_to_fp8x2(__half2(__half(x), __half(x)), __HIP_SATFINITE, __HIP_E4M3_FNUZ) >> 8;
  out[5] = __hip_fp8_e4m3_fnuz(__hip_bfloat16(x)).__x;
}
__global__ void narrow_each(const float* x, unsigned char* out) { narrow(x[threadIdx.x], out + 6 * threadIdx.x); }
torch::Tensor narrowed(torch::Tensor x) {
  auto out = torch::empty({2, x.size(0), 6}, x.options().dtype(torch::kUInt8));
  narrow_each<<<1, x.size(0)>>>(x.data_ptr<float>(), out.data_ptr<uint8_t>());
  for (int i = 0; i < x.size(0); i++) narrow(x.data_ptr<float>()[i], out.data_ptr<uint8_t>() + 6 * (x.size(0) + i));
  return out;
}

__global__ void add_pairs(const float* x, __half2* halves, __hip_bfloat162* others) {
  unsafeAtomicAdd(&halves[threadIdx.x % 2], __half2(x[threadIdx.x], 1.0f));
  unsafeAtomicAdd(&others[threadIdx.x % 2], __hip_bfloat162(x[threadIdx.x], 1.0f));
}
torch::Tensor added(torch::Tensor x) {
  auto halves = torch::zeros({4}, x.options().dtype(torch::kFloat16));
  auto others = torch::zeros({4}, x.options().dtype(torch::kBFloat16));
  add_pairs<<<1, 64>>>(x.data_ptr<float>(), (__half2*)halves.data_ptr(), (__hip_bfloat162*)others.data_ptr());
  return torch::cat({halves.to(torch::kFloat32), others.to(torch::kFloat32)});
}

__global__ void compare(const float* x, float* out) {
  const __hip_bfloat162 a(x[0], x[1]), b(x[2], x[3]);
  const float found[] = {(float)__hblt2(a, b), (float)__hbltu2(a, b), (float)__hlt2(a, b).x, (float)__hltu(a.y, b.y),
                         (float)__hisnan2(a).y, (float)__hisinf(b.x), (float)__hequ(a.x, a.x)};
  for (int i = 0; i < 7; i++) out[i] = found[i];
}
torch::Tensor compared(torch::Tensor x) {
  auto out = torch::empty({7}, x.options());
  compare<<<1, 1>>>(x.data_ptr<float>(), out.data_ptr<float>());
  return out;
}
__global__ void maximum(const float* x, double* wide, float* narrow, long long* whole) {
  unsafeAtomicMax(wide, (double)x[threadIdx.x]);
  unsafeAtomicMin(narrow, x[threadIdx.x]);
  atomicMax(whole, (long long)x[threadIdx.x] << 33);
}
torch::Tensor largest(torch::Tensor x) {
  void* kept;
  TORCH_CHECK(hipHostMalloc(&kept, 24, hipHostAllocMapped) == hipSuccess, "memory");
  double* wide = (double*)kept;
  float* narrow = (float*)(wide + 1);
  long long* whole = (long long*)(wide + 2);
  *wide = -1000, *narrow = 1000, *whole = -1000;
  maximum<<<1, x.size(0)>>>(x.data_ptr<float>(), wide, narrow, whole);
  auto out = torch::tensor({*wide, (double)*narrow, (double)*whole});
  (void)hipHostFree(kept);
  return out;
}
__global__ void number_tiles(float* out) {
  namespace cg = cooperative_groups;
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<16>(block);
  const cg::thread_block_tile<16> plain = tile;
  out[threadIdx.x] = 10 * tile.meta_group_rank() + tile.meta_group_size();
  out[threadIdx.x + 64] = 10 * plain.meta_group_rank() + plain.meta_group_size();
}
torch::Tensor tiled(torch::Tensor x) {
  auto out = torch::empty({128}, x.options());
  number_tiles<<<1, 64>>>(out.data_ptr<float>());
  return out;
}
torch::Tensor limits(torch::Tensor x) { return torch::tensor({HIP_PI, HIP_LOG2E, HIP_SQRT_HALF, (double)HIP_LN2_F}); }
"""


@pytest.fixture(scope="module")
def call() -> Allocations:
    return Allocations((), (), 0xAB)


def loaded(call: Allocations, host: str, device: str, functions: tuple[str, ...]) -> ModuleType:
    """Return an extension whose kernels the machine executes."""
    native = machine.loaded(machine_build.build(environment.cache_folder() / "machine"))

    def execute(launch: KernelLaunch) -> None:
        done = run(launch, call.memory())
        assert not done.findings and not done.gave_up, done.findings

    session = Session(library.path(), Simulated(FACTS, lambda text: Code(native, text), execute, lambda: call))
    wanted = request("headers", host, device, functions)
    built = build.whole(wanted, "gfx942", 240)
    assert built.path is not None, built.report.log
    found = module.imported(wanted, str(built.path), True, session)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def extension(call: Allocations) -> ModuleType:
    return loaded(call, HOST, DEVICE, FUNCTIONS)


@pytest.fixture(autouse=True)
def followed(call: Allocations) -> Iterator[None]:
    with call:
        yield


def test_the_parts_of_a_pair_of_halves_are_halves(extension: ModuleType) -> None:
    x = torch.randn(64, 2).half()
    right = torch.cat([x[:, 0].float() - x[:, 1], x.max(1).values.float(), x[:, 0].float() - x[:, 1]])
    assert torch.equal(extension.parts(x), right)


def test_each_result_in_bf16_is_rounded(extension: ModuleType) -> None:
    x = torch.randn(192)
    a, b, c = x.bfloat16().view(3, 64)
    total = a * b + c - a
    found = extension.rounded(x).view(4, 64)
    assert torch.equal(found[0], (a * b + c).float()) and torch.equal(found[1], total.float())
    assert torch.equal(found[2], a.float().exp().bfloat16().float())
    # a tie of two numbers of bf16 that a little less decides; as fp32 it would be a tie still
    tie = torch.full((192,), 1 + 3 * 2**-8)
    assert torch.equal(extension.rounded(tie)[192:], torch.full((64,), 1 + 2**-7))


def test_fp8_saturates_where_rocms_headers_do(extension: ModuleType) -> None:
    x = torch.tensor([0.0, 1.0625, -1.5, 240, 247, 248, 250, -300, 1e6, -1e30, torch.inf, -torch.inf, torch.nan])
    device, host = extension.narrowed(x)
    assert torch.equal(device, host)

    def codes(wide: torch.Tensor, dtype: torch.dtype = torch.float8_e4m3fnuz) -> list[int]:
        most = torch.finfo(dtype).max
        return torch.where(wide.isfinite(), wide.clamp(-most, most), torch.nan).to(dtype).view(torch.uint8).tolist()

    assert device[:, 0].tolist() == codes(x) == device[:, 5].tolist()
    assert device[:, 1].tolist() == codes(x, torch.float8_e5m2fnuz) == device[:, 3].tolist()
    assert device[:, 2].tolist() == x.to(torch.float8_e4m3fnuz).view(torch.uint8).tolist()
    assert device[:, 4].tolist() == codes(x.half().float())


def test_pairs_are_added_by_one_instruction(extension: ModuleType) -> None:
    x = torch.arange(64, dtype=torch.float32) % 4
    sums = [x[0::2].sum(), 32.0, x[1::2].sum(), 32.0]
    assert extension.added(x).tolist() == [*sums, *sums]


def test_pairs_in_bf16_are_compared(extension: ModuleType) -> None:
    assert extension.compared(torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [1, 1, 1, 1, 0, 0, 1]
    found = extension.compared(torch.tensor([1.0, torch.nan, -torch.inf, 4.0])).tolist()
    assert found == [0, 0, 0, 1, 1, -1, 1]


def test_numbers_have_names(extension: ModuleType) -> None:
    found = extension.limits(torch.zeros(1)).tolist()
    assert found == pytest.approx([3.14159265, 1.44269504, 0.70710678, 0.69314718])


def test_extremes_of_many_types(extension: ModuleType) -> None:
    x = torch.arange(-20, 44, dtype=torch.float32)
    assert extension.largest(x).tolist() == [43, -20, 43 * 2**33]


def test_tiles_of_a_block_are_numbered(extension: ModuleType) -> None:
    numbers = (torch.arange(64) // 16 * 10 + 4).float()
    assert torch.equal(extension.tiled(torch.zeros(1)), torch.cat([numbers, numbers]))
