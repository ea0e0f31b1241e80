"""Whole HIP submissions on a CPU: host code by the real compiler, kernels by the machine, values against torch."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.compilers.request import CompileError, ExtensionRequest
from kernel_scientist.gpu.machine import build as machine_build
from kernel_scientist.gpu.machine import library as machine
from kernel_scientist.gpu.machine.allocations import Allocations
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.dispatch import KernelLaunch
from kernel_scientist.gpu.machine.host import build, headers, library, module, submitted
from kernel_scientist.gpu.machine.host.session import HostError, Session
from kernel_scientist.gpu.machine.host.simulated import Simulated
from kernel_scientist.gpu.machine.launch import NotSimulatedError, run
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.records import environment
from tests.gpu.machine.host.recorder import FACTS

TOOLS = hip.find()
pytestmark = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))

HOST = """
torch::Tensor scaled(torch::Tensor x, double by);
double summed(torch::Tensor x);
torch::Tensor looked_up(torch::Tensor x, std::vector<double> table);
torch::Tensor narrowed(torch::Tensor x, bool wide);
int64_t resident(int64_t threads);
void captured(torch::Tensor x);
void together(torch::Tensor x);
void too_large(torch::Tensor x, int64_t threads, int64_t lds);
torch::Tensor checked(torch::Tensor x);
"""
DEVICE = r"""
#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp8.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

template <typename T>
__global__ void scale(T* out, const T* in, float by, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = (T)((float)in[i] * by);
}
torch::Tensor scaled(torch::Tensor x, double by) {
  TORCH_CHECK(x.is_cuda() && x.device().is_cuda() && x.device().type() == torch::kCUDA, "not here: ", x.device());
  const at::cuda::OptionalCUDAGuard guard(x.device());
  auto out = torch::empty(x.sizes(), torch::TensorOptions().dtype(x.dtype()).device(torch::kCUDA));
  cudaStream_t queue = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "scale", [&] {
    scale<scalar_t><<<dim3((x.numel() + 255) / 256), 256, 0, queue>>>(
        out.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), (float)by, x.numel());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

struct Range { const float* from; int count; };
static __global__ void add_up(Range range, float* total, unsigned* blocks) {
  __shared__ float part[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  part[threadIdx.x] = i < range.count ? range.from[i] : 0;
  __syncthreads();
  for (int half = 128; half; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    atomicAdd(total, part[0]);
    atomicAdd(blocks, 1u);
  }
}
double summed(torch::Tensor x) {
  static float* buffer = nullptr;
  if (!buffer) C10_CUDA_CHECK(hipMalloc((void**)&buffer, 8));
  hipStream_t stream;
  C10_CUDA_CHECK(hipStreamCreate(&stream));
  C10_CUDA_CHECK(hipMemsetAsync(buffer, 0, 8, stream));
  int count = x.numel(), blocks = (count + 255) / 256;
  hipLaunchKernelGGL(add_up, dim3(blocks), dim3(256), 0, stream, Range{x.data_ptr<float>(), count}, buffer,
                     (unsigned*)buffer + 1);
  float total[2];
  C10_CUDA_CHECK(hipMemcpy(total, buffer, 8, hipMemcpyDeviceToHost));
  TORCH_CHECK(*(unsigned*)&total[1] == blocks, "blocks");
  return total[0];
}

namespace {
__constant__ float values[8];
__device__ int used;
__global__ void look_up(float* out, const long* at) {
  out[threadIdx.x] = values[at[threadIdx.x]];
  if (threadIdx.x == 0) used++;
}
}
torch::Tensor looked_up(torch::Tensor x, std::vector<double> table) {
  std::vector<float> narrow(table.begin(), table.end());
  (void)hipMemcpyToSymbol(HIP_SYMBOL(values), narrow.data(), narrow.size() * sizeof(float));
  auto out = torch::empty({x.size(0) + 1}, torch::dtype(torch::kFloat32).device(torch::kCUDA));
  look_up<<<1, x.size(0)>>>(out.data_ptr<float>(), x.data_ptr<int64_t>());
  int count = 0;
  (void)hipMemcpyFromSymbol(&count, HIP_SYMBOL(used), sizeof(int));
  out[-1] = count;
  return out;
}

torch::Tensor narrowed(torch::Tensor x, bool wide) {
  auto out = torch::empty_like(x, torch::dtype(torch::kUInt8));
  for (int64_t i = 0; i < x.numel(); i++) {
    float value = x.data_ptr<float>()[i];
    __hip_fp8_e4m3_fnuz four(value);
    __hip_fp8_e5m2_fnuz five(value);
    out.data_ptr<uint8_t>()[i] = wide ? five.__x : four.__x;
    TORCH_CHECK(__hip_fp8_e5m2_fnuz((float)five).__x == five.__x, "bf8 ", (int)five.__x);
    TORCH_CHECK(__hip_fp8_e4m3_fnuz((float)four).__x == four.__x, "fp8 ", (int)four.__x);
  }
  return out;
}

int64_t resident(int64_t threads) {
  int blocks = 0;
  C10_CUDA_CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale<float>, threads, 0));
  hipDeviceProp_t facts;
  C10_CUDA_CHECK(hipGetDeviceProperties(&facts, 0));
  return blocks * facts.multiProcessorCount;
}
void captured(torch::Tensor x) {
  hipStream_t stream;
  (void)hipStreamCreate(&stream);
  (void)hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal);
}
__global__ void turn(float* x, long n) {
  cooperative_groups::grid_group all = cooperative_groups::this_grid();
  long i = all.thread_rank();
  float mine = i < n ? x[n - 1 - i] : 0;
  all.sync();
  if (i < n) x[i] = mine;
}
void together(torch::Tensor x) {
  float* pointer = x.data_ptr<float>();
  long n = x.numel();
  void* arguments[] = {&pointer, &n};
  C10_CUDA_CHECK(hipLaunchCooperativeKernel((void*)turn, dim3((n + 255) / 256), dim3(256), arguments, 0, nullptr));
}
void too_large(torch::Tensor x, int64_t threads, int64_t lds) {
  scale<float><<<1, threads, lds>>>(x.data_ptr<float>(), x.data_ptr<float>(), 1, x.numel());
}
torch::Tensor checked(torch::Tensor x) {
  TORCH_CHECK(x.dim() == 2, "two dimensions are needed, not ", x.dim());
  return x;
}
"""
FUNCTIONS = ("scaled", "summed", "looked_up", "narrowed", "resident", "captured", "together", "too_large", "checked")


@dataclass
class Bench:
    """A session with the machine."""

    call: Allocations
    session: Session

    def extension(self, request: ExtensionRequest, is_module: bool = True, file: str = "") -> Any:
        built = build.whole(request, "gfx942", 240)
        if built.path is None:
            raise CompileError(built.report.log)
        return module.imported(request, str(built.path), is_module, self.session, file)


def request(name: str, host: str, device: str, functions: tuple[str, ...], *flags: str) -> ExtensionRequest:
    named = {function: f'"{function}"\\' for function in functions}  # docstrings are text, whatever is in them
    return ExtensionRequest(name, [host], [device], named, [], list(flags), [], [], True, True, True)


@pytest.fixture(scope="module")
def bench() -> Bench:
    native = machine.loaded(machine_build.build(environment.cache_folder() / "machine"))
    call = Allocations((), (), 0xAB)

    def execute(launch: KernelLaunch) -> None:
        done = run(launch, call.memory())
        assert not done.findings and not done.gave_up, done.findings

    device = Simulated(FACTS, lambda text: Code(native, text), execute, lambda: call)
    return Bench(call, Session(library.path(), device))


def test_precompiled_headers_that_were_moved_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They name the files that they were made of; a file that is not there was said to be the kernel's error."""
    assert isinstance(TOOLS, hip.Toolchain)
    made = headers.folder(TOOLS, "c++20")
    moved = tmp_path / "cache"
    shutil.copytree(made, moved / "hip-host" / made.name, symlinks=True)
    monkeypatch.setenv("KERNEL_SCIENTIST_CACHE", str(moved))
    assert headers.folder(TOOLS, "c++20") not in (made, moved / "hip-host" / made.name)
    built = build.whole(request("moved", HOST, DEVICE, FUNCTIONS), "gfx942", 240)
    assert built.path is not None and moved in built.path.parents, built.report.log


@pytest.fixture(scope="module")
def extension(bench: Bench) -> ModuleType:
    flags = ("--offload-arch=gfx942 -O3", "-std=c++17", "-lrocblas", "--save-temps")
    return bench.extension(request("whole", HOST, DEVICE, FUNCTIONS, *flags))


@pytest.fixture(autouse=True)
def followed(bench: Bench) -> Iterator[None]:
    with bench.call:
        yield
    bench.session.check()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_a_template_is_dispatched_by_type_and_its_output_made_in_cpp(extension: ModuleType, dtype: torch.dtype) -> None:
    x = torch.randn(3, 171).to(dtype)
    assert torch.equal(extension.scaled(x, 0.5), (x.float() * 0.5).to(dtype))


def test_a_static_buffer_is_kept_and_cleared_between_calls(extension: ModuleType) -> None:
    for size in (1, 256, 1000):
        x = torch.arange(size, dtype=torch.float32)
        assert extension.summed(x) == size * (size - 1) / 2


def test_variables_of_the_device_are_written_and_keep_their_values(extension: ModuleType) -> None:
    at = torch.tensor([7, 0, 3])
    for count in (1, 2):
        found = extension.looked_up(at, [0.5 * n + count for n in range(8)])
        assert found.tolist() == [3.5 + count, count, 1.5 + count, count]


@pytest.mark.parametrize("wide", [False, True])
def test_fp8_on_the_host_is_torchs(extension: ModuleType, wide: bool) -> None:
    dtype = torch.float8_e5m2fnuz if wide else torch.float8_e4m3fnuz
    most = torch.finfo(dtype).max
    x = torch.cat([torch.randn(5000) * scale for scale in (1e-4, 0.01, 1, 100)]).clamp(-most, most)
    x = torch.cat([x, torch.tensor([0.0, -0.0, most, -most, torch.nan, 2**-11, 2**-10, 1.0625, 1.1875])])
    assert torch.equal(extension.narrowed(x, wide), x.to(dtype).view(torch.uint8))


def test_occupancy_comes_from_the_codes_registers(extension: ModuleType) -> None:
    assert extension.resident(256) == 8 * 304 and extension.resident(1024) == 2 * 304


def test_workgroups_of_a_cooperative_launch_wait_for_each_other(extension: ModuleType) -> None:
    x = torch.arange(1000, dtype=torch.float32)
    right = x.flip(0)
    extension.together(x)
    assert torch.equal(x, right)


def test_refusals_name_the_line(extension: ModuleType) -> None:
    x = torch.zeros(8)
    lines = DEVICE.splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "hipStreamBeginCapture" in text)
    words = rf"^hipStreamBeginCapture \(source 1, line {line}\): [^\n]* not simulated[^\n]*$"
    with pytest.raises(NotSimulatedError, match=words):
        extension.captured(x)


def test_launches_that_the_device_would_refuse(extension: ModuleType) -> None:
    with pytest.raises(HostError, match="has 2048 threads in a block, and the most are 1024"):
        extension.too_large(torch.zeros(8), 2048, 0)
    with pytest.raises(HostError, match="needs 65552 bytes of LDS, of 65536"):
        extension.too_large(torch.zeros(8), 64, 65552)
    extension.too_large(torch.zeros(8), 64, 65536)


WAYS = r"""
#include <hip/hip_runtime.h>
#include <hip/hip_ext.h>
extern "C" hipError_t hipGetFuncBySymbol(hipFunction_t*, const void*);  // older headers lack it
template <typename T, int N = 1>
__global__ void fill(T* x) { x[threadIdx.x] = N; }
__global__ void other(float* x) { x[threadIdx.x] = 2; }
#define RUN(threads) fill<float><<<1, threads>>>(p)
template <typename T> void helper(T* p, int threads) {
  fill<T>
      <<<dim3(1),  // way 0
         threads>>>(p);
}
void launch(torch::Tensor x, int64_t way, int64_t threads) {
  float* p = x.data_ptr<float>();
  void* arguments[] = {&p};
  fill<float><<<1, 8>>>(p);
  if (way == 0) helper(p, threads);
  if (way == 1) RUN(threads);  // way 1
  if (way == 2)
    hipLaunchKernelGGL((fill<float, 3>),  // way 2
                       dim3(1), dim3(threads), 0,
                       nullptr, p);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "fill", ([&] {
    if (way == 3)
      fill<scalar_t><<<1, threads>>>(x.data_ptr<scalar_t>());  // way 3
    else
      other<<<1, 8>>>(p);
  }));
  if (way == 4) (void)hipLaunchKernel(reinterpret_cast<void*>(fill<float, 2>), 1, threads, arguments, 0, 0);  // way 4
  if (way == 5)
    (void)::hipLaunchCooperativeKernel(fill<float>, 1, threads, arguments, 0, nullptr);  // way 5
  hipFunction_t function;
  (void)hipGetFuncBySymbol(&function, (const void*)other);
  if (way == 6) (void)hipModuleLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, nullptr, arguments, nullptr);  // way 6
  if (way == 7) hipExtLaunchKernelGGL(other, 1, threads, 0, nullptr, nullptr, nullptr, 0, p);  // way 7
  if (way == 8) (void)hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal);  // way 8
}
"""


def test_every_way_to_launch_is_refused_with_its_line(bench: Bench) -> None:
    host = "void launch(torch::Tensor x, int64_t way, int64_t threads);"
    file = f'HOST = "{host}"\nDEVICE = r"""{WAYS}"""\n'
    written = request("ways", host, WAYS, ("launch",))
    ways, x = bench.extension(written, file=file), torch.zeros(8)
    for way in range(9):
        line = next(n for n, text in enumerate(file.splitlines(), 1) if text.endswith(f"// way {way}"))
        with pytest.raises((HostError, NotSimulatedError), match=rf"^hip\w+ \(kernel\.py, line {line}\): ") as told:
            ways.launch(x, way, 2048)
        assert way == 8 or "2048 threads" in str(told.value) or "run at a time" in str(told.value), told.value
    for way in range(8):
        ways.launch(x, way, 8)
        assert x[0] in (1, 2, 3)


@given(st.lists(st.sampled_from(["(", ")", "a<<<1>>>(x)", "F(", "b", "hipLaunchKernelGGL(k,"]), max_size=30), st.data())
def test_a_launch_s_line_is_in_its_statement(parts: list[str], data: st.DataObject) -> None:
    text = submitted.Text("t[0]", "\n".join(parts) or "b", "")
    line = data.draw(st.integers(1, max(1, len(parts))))
    (number,) = map(int, re.findall(r"\(line (\d+)\)", submitted.launch(("t[0]", line), "a launch of a", [text])))
    assert 1 <= number <= line and submitted.launch(("u[0]", line), "", [text]) == ""


def test_what_host_code_raises_is_raised(extension: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="two dimensions are needed, not 1"):
        extension.checked(torch.zeros(3))


SMALL = r"""
#include <hip/hip_runtime.h>
__global__ void one(float* x) { x[threadIdx.x] = 1; }
void ones(torch::Tensor x) { one<<<1, x.numel()>>>(x.data_ptr<float>()); LATER }
"""


def small(name: str, later: str, host: str = "void ones(torch::Tensor x);", *flags: str) -> ExtensionRequest:
    return request(name, host, SMALL.replace("LATER", later), ("ones",), *flags)


def test_a_function_that_is_not_there_is_named_with_its_line(bench: Bench) -> None:
    lost = small("lost", "\n  unsigned flags; (void)hipTexRefGetFlags(&flags, nullptr);")
    with pytest.raises(NotSimulatedError, match=r"^hipTexRefGetFlags \(source 1, line 5\) is not simulated$"):
        bench.extension(lost)
    with pytest.raises(CompileError, match=r"cannot be imported: .*mine"):
        bench.extension(small("own", "extern void mine(); mine();"))


def test_sources_that_repeat_each_other_are_compiled_apart(bench: Bench) -> None:
    host = "static int twice() { return 2; }\nvoid ones(torch::Tensor x);"
    both = small("both", "TORCH_CHECK(twice() == 2 && LIMIT == 3);", host, "-DLIMIT=3")
    both.cuda_sources[0] = "static int twice() { return 2; }\n" + both.cuda_sources[0]
    x = torch.zeros(70)
    bench.extension(both).ones(x)
    assert torch.equal(x, torch.ones(70))


def test_operators_of_torch_are_registered_for_the_device(bench: Bench) -> None:
    registers = """
TORCH_LIBRARY(own_of_hip, m) { m.def("ones(Tensor! x) -> ()"); }
TORCH_LIBRARY_IMPL(own_of_hip, CUDA, m) { m.impl("ones", &ones); }"""
    source = SMALL.replace("LATER", "") + registers
    assert (
        bench.extension(ExtensionRequest("ops", [""], [source], None, [], [], [], [], True, True, True), False) is None
    )
    x = torch.zeros(70)
    torch.ops.own_of_hip.ones(x)
    assert torch.equal(x, torch.ones(70))


def test_an_error_in_host_code_names_source_and_line(bench: Bench) -> None:
    wrong = small("wrong", "\n  x.does_not_exist();")
    built = build.build(wrong, "", 240)
    assert built.path is None and "wrong[0]:5:" in built.report.log and "does_not_exist" in built.report.log


@pytest.mark.slow
def test_what_the_precompiled_headers_lack_torch_has(bench: Bench) -> None:
    host = "torch::Tensor positive(torch::Tensor x) { return torch::nn::functional::relu(x); }"
    nn = request("nn", f"{host}\nvoid ones(torch::Tensor x);", SMALL.replace("LATER", ""), ("ones", "positive"))
    assert bench.extension(nn).positive(torch.tensor([-1.0, 2.0])).tolist() == [0, 2]


@pytest.mark.parametrize("flag", ["-fplugin=x.so", "-Wl,-x", "@file", "-include/etc/passwd", "'"])
def test_flags_that_are_not_allowed(flag: str) -> None:
    built = build.build(small("flagged", "", "void ones(torch::Tensor x);", flag), "", 60)
    assert built.path is None and ("is not allowed" in built.report.log or "cannot be read" in built.report.log)
