"""HIP and CUDA device code by real compilers, without a GPU; and what submissions hand to torch's builder."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils import cpp_extension

from kernel_scientist.gpu.capture.code_findings import findings
from kernel_scientist.gpu.fake import recorded_builds
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.gpu.toolchains import cuda, hip, messages
from kernel_scientist.gpu.toolchains.compiled import Compiled
from kernel_scientist.gpu.toolchains.sources import hipified, joined
from kernel_scientist.records.evaluation import CodeObject
from kernel_scientist.records.gpu import Build
from tests.conftest import ROOT

TOOLS = hip.find()
needs_hip = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
needs_cuda = pytest.mark.skipif(cuda.find() is None, reason="neither nvcc nor NVRTC is installed")

VECTOR_ADD = """
#include <hip/hip_runtime.h>
__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
"""
GEMM = """
#include <hip/hip_runtime.h>
typedef float f32x16 __attribute__((ext_vector_type(16)));
__global__ __launch_bounds__(256) void gemm(const unsigned char* a, const unsigned char* b, float* c, int n, int k) {
  __shared__ __attribute__((aligned(16))) unsigned char sa[64 * 64], sb[64 * 64];
  int tid = threadIdx.x, wave = tid / 64, lane = tid % 64;
  f32x16 acc = {};
  for (int k0 = 0; k0 < k; k0 += 64) {
    *(uint4*)&sa[tid * 16] = *(const uint4*)&a[(blockIdx.y * 64 + tid / 4) * k + k0 + tid % 4 * 16];
    *(uint4*)&sb[tid * 16] = *(const uint4*)&b[(blockIdx.x * 64 + tid / 4) * k + k0 + tid % 4 * 16];
    __syncthreads();
    for (int kk = 0; kk < 64; kk += 16) {
      long x = *(const long*)&sa[(wave / 2 * 32 + lane % 32) * 64 + kk + lane / 32 * 8];
      long y = *(const long*)&sb[(wave % 2 * 32 + lane % 32) * 64 + kk + lane / 32 * 8];
      acc = __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(x, y, acc, 0, 0, 0);
    }
    __syncthreads();
  }
  for (int i = 0; i < 16; i++) {
    int row = blockIdx.y * 64 + wave / 2 * 32 + i / 4 * 8 + lane / 32 * 4 + i % 4;
    c[row * n + blockIdx.x * 64 + wave % 2 * 32 + lane % 32] = acc[i];
  }
}
"""
HOST = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <hip/hip_fp16.h>
#include <hip/amd_detail/amd_hip_fp8.h>
#include <hip/amd_detail/amd_hip_bf16.h>

template <typename T>
__global__ void scale(T* out, const T* in, float by, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = (T)((float)in[i] * by);
}
__global__ void narrow(__hip_bfloat16* out, const __hip_fp8_e4m3_fnuz* in, float* sum) {
  out[threadIdx.x] = __float2bfloat16((float)in[threadIdx.x]);
  float mine = __bfloat162float(out[threadIdx.x]);
  for (int offset = 32; offset; offset /= 2) mine += __shfl_xor_sync(~0ull, mine, offset);
  if (threadIdx.x == 0) atomicAdd(sum, mine);
}
torch::Tensor run(torch::Tensor x, double by) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous(), "not here: ", x.device());
  const at::cuda::OptionalCUDAGuard guard(x.device());
  auto out = torch::empty({x.size(0), x.size(1)}, x.options().dtype(x.scalar_type()));
  cudaStream_t queue = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "scale", [&] {
    scale<scalar_t><<<dim3((x.numel() + 255) / 256), 256, 0, queue>>>(
        out.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), (float)by, x.numel());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run, "scales"); }
"""

FNUZ = """
#include <hip/amd_detail/amd_hip_bf16.h>
#include <hip/amd_detail/amd_hip_fp8.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_runtime.h>
#include <torch/torch.h>
namespace cg = cooperative_groups;
using floats = float __attribute__((ext_vector_type(4)));

__launch_bounds__(256, 2)
__global__ void transpose_and_multiply(const __hip_fp8_e4m3_fnuz* __restrict__ a, const uint64_t* __restrict__ packed,
                                       __hip_bfloat16* __restrict__ c, size_t m) {
  __shared__ __hip_fp8_e4m3_fnuz tile[64][64 + 8];
  cg::thread_block group = cg::this_thread_block();
  __hip_fp8_e4m3_fnuz row[4] = {a[threadIdx.x], a[threadIdx.x + m], a[threadIdx.x + 2 * m], a[threadIdx.x + 3 * m]};
  *(float*)&tile[threadIdx.x % 64][threadIdx.x / 64 * 4] = threadIdx.x < m ? *(float*)row : 0;
  group.sync();
  floats sum[2] = {0};
  long left = *(long*)&tile[threadIdx.x % 16][threadIdx.x / 16 % 4 * 8];
  sum[0] = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(left, packed[threadIdx.x], sum[0], 0, 0, 0);
  for (int i = 0; i < 4; i++) c[i * m + threadIdx.x] = (__hip_bfloat16)(sum[0][i] * __shfl(sum[0][0], 3, 64));
}
void run(torch::Tensor a, torch::Tensor as, torch::Tensor c) {
  size_t m = a.size(0);
  auto options = torch::TensorOptions().dtype(torch::kUInt64).device(torch::kCUDA);
  torch::Tensor packed = torch::empty(m * 64, options);
  transpose_and_multiply<<<dim3(m / 64), dim3(64, 4), 0, 0>>>((__hip_fp8_e4m3_fnuz*)a.data_ptr(),
      packed.data_ptr<uint64_t>(), (__hip_bfloat16*)c.data_ptr(), m);
}
"""


def compiled(source: str, arch: str = "gfx942", flags: tuple[str, ...] = ()) -> Compiled:
    return hip.compile_hip(source, arch, list(flags), 240)


def read(source: str) -> list[CodeObject]:
    got = compiled(source)
    assert got.ok, got.log
    return assembly.read(got.assembly)


@needs_hip
def test_texts_in_device_code_are_defined_there() -> None:
    text = "#include <hip/hip_runtime.h>\n#include <cassert>\n"
    assert compiled(text + "__global__ void k(int* x) { assert(x[0] > 3); x[threadIdx.x] = 1; }").ok


@needs_hip
def test_a_vector_addition() -> None:
    (add,) = read(VECTOR_ADD)
    assert (add.kernel, add.arch, add.num_warps) == ("add", "gfx942", 16)
    assert add.accesses["global_load 32"] == 2 and add.accesses["global_store 32"] == 1
    assert add.occupancy == 8 and add.scratch_bytes == 0 and "s_swappc" not in compiled(VECTOR_ADD).assembly
    assert compiled(VECTOR_ADD).cached


@needs_hip
def test_a_tiled_gemm_with_matrix_instructions() -> None:
    (gemm,) = read(GEMM)
    assert gemm.mfma == {"v_mfma_f32_32x32x16_fp8_fp8": 4} and gemm.num_warps == 4
    assert gemm.lds_bytes == 2 * 64 * 64 and gemm.accesses["ds_write 128"] == 2
    assert gemm.mix[1]["v_mfma_f32_32x32x16_fp8_fp8"] == 4 and gemm.mix[1]["barrier"] == 2
    assert gemm.agpr + gemm.vgpr >= 16
    stated = re.search(r"; Occupancy: (\d+)", compiled(GEMM).assembly)
    assert stated is not None and gemm.occupancy == int(stated[1])


BARRIER = """
#include <hip/hip_runtime.h>
__global__ void turn(float* x) {
  __shared__ float s[256];
  s[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  x[blockIdx.x * 256 + threadIdx.x] = s[255 - threadIdx.x] * sinf(s[threadIdx.x]);
}
"""


@needs_hip
def test_a_barrier_is_an_instruction_and_no_call() -> None:
    """A call would make the compiler save registers around it: 46 of them instead of 21 here."""
    text = compiled(BARRIER).assembly
    assert re.search(r"^\s*s_barrier", text, re.M) and not re.search(r"s_swappc|@rel32", text)


@needs_hip
def test_code_that_could_not_be_loaded_is_refused() -> None:
    source = VECTOR_ADD.replace("__global__", "__device__ float scale(float);\n__global__").replace(
        "= a[i]", "= scale(a[i])"
    )
    found = hip.compile_hip(source, "gfx942", [])
    assert not found.ok and "_Z5scalef is used and not defined in device code" in found.log
    defined = source.replace("float scale(float);", "__attribute__((noinline)) float scale(float x) { return 2 * x; }")
    assert hip.compile_hip(defined, "gfx942", []).ok


@needs_hip
def test_nested_loops_are_those_that_llvm_names() -> None:
    inner = "\n#pragma unroll 1\nfor (int l = 0; l < j; l++) t += a[l * j];"
    loops = f"for (int j = 0; j < n; j++) {{ float t = 0; {inner} c[j] = t; }}"
    source = VECTOR_ADD.replace("c[i] = a[i] + b[i];", loops)
    (nested,) = read(source)
    text = compiled(source).assembly
    assert "Depth=2" in text and len(nested.mix) == 3 and sum(nested.mix[2].values()) >= 4


@needs_hip
def test_too_much_lds_is_said_with_both_numbers() -> None:
    source = """#include <hip/hip_runtime.h>
    __global__ __launch_bounds__(256) void big(float* a) {
      __shared__ float s[20000];
      s[threadIdx.x * 70] = a[threadIdx.x];
      __syncthreads();
      a[threadIdx.x] = s[threadIdx.x * 7 & 8191];
    }"""
    got = compiled(source)
    assert not got.ok and not got.missing and "80000" in got.log and "65536" in got.log and "big" in got.log


@needs_hip
def test_a_syntax_error_names_source_and_line() -> None:
    got = compiled(joined(["#include <hip/hip_runtime.h>", "__global__ void bad(float* a) {\n  a[0] = 1.0f\n}"]))
    assert not got.ok and not got.missing
    assert "source[1]:2:" in got.log and "expected ';'" in got.log and "a[0] = 1.0f" in got.log


@needs_hip
def test_a_typical_submission_with_host_code() -> None:
    got = compiled(
        hipified(joined([recorded_builds.IMPLICIT, HOST])),
        flags=("--offload-arch=gfx942", "-std=c++20"),
    )
    assert got.ok, got.log
    found = assembly.read(got.assembly)
    assert len(found) == 5 and "narrow" in {code.kernel for code in found}
    (narrow,) = (code for code in found if code.kernel == "narrow")
    assert narrow.accesses["global_load 8"] == 1 and narrow.mix[0]["atomic"] == 1


@needs_hip
def test_what_submissions_do_with_fp8_in_lds() -> None:
    (code,) = read(FNUZ)
    assert code.kernel == "transpose_and_multiply" and code.lds_bytes == 64 * 72 and code.num_warps == 4
    assert code.mfma == {"v_mfma_f32_16x16x32_fp8_fp8": 1} and code.barriers == 1


@needs_hip
def test_a_builtin_that_is_unknown_is_the_kernels_error_with_a_note() -> None:
    got = compiled(VECTOR_ADD.replace("a[i] + b[i]", "__builtin_amdgcn_does_not_exist(a[i])"))
    assert not got.ok and not got.missing and "__builtin_amdgcn_does_not_exist" in got.log and "older" in got.log


@pytest.mark.slow
@needs_hip
def test_what_our_few_declarations_lack_torch_has() -> None:
    body = "void f(torch::Tensor x) { auto y = torch::softmax(x.matmul(x.t()).to(torch::kFloat), -1); }"
    got = compiled(f"#include <torch/types.h>\n{VECTOR_ADD}\n{body}")
    assert got.ok, got.log[:2000]
    assert assembly.read(got.assembly)[0].kernel == "add"


@needs_hip
def test_what_this_machine_lacks_is_no_fault_of_the_kernel() -> None:
    used = "__global__ void other(float* x) { rocprim::fill(x, 1.0f); }"
    got = compiled("#include <rocprim/does_not_exist.hpp>\n" + VECTOR_ADD + used)
    assert not got.ok and "rocprim/does_not_exist.hpp" in got.missing
    unknown = compiled(VECTOR_ADD, "gfx9999")
    assert not unknown.ok and "gfx9999" in unknown.missing
    own = compiled('#include "mine.h"\n' + VECTOR_ADD)
    assert not own.ok and not own.missing


@needs_hip
def test_headers_that_are_included_and_not_used_are_not_needed() -> None:
    unused = ("ck/does_not_exist.hpp", "hipblaslt/does_not_exist.h", "hip/amd_detail/does_not_exist.h")
    got = compiled("".join(f"#include <{name}>\n" for name in unused) + VECTOR_ADD)
    assert got.ok and assembly.read(got.assembly)[0].kernel == "add", got.log


@needs_hip
def test_gfx950_is_compiled_or_said_to_be_unknown() -> None:
    got = compiled(VECTOR_ADD, "gfx950")
    assert (got.ok and assembly.read(got.assembly)[0].arch == "gfx950") or "gfx950" in got.missing


def test_without_a_compiler_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hip, "find", lambda: "no HIP compiler")
    got = hip.compile_hip(VECTOR_ADD, "gfx942", [])
    assert not got.ok and got.missing == "no HIP compiler"


@needs_hip
@pytest.mark.parametrize("flag", ["-fplugin=x.so", "-Xclang", "-o", "@file", "--config=x", "-Wl,-x", "-save-stats"])
def test_flags_that_are_not_allowed(flag: str) -> None:
    got = compiled(VECTOR_ADD, flags=(flag,))
    assert not got.ok and flag in got.log


@needs_hip
@pytest.mark.parametrize("line", [f'#include "{ROOT}/params.yaml"', '#include "/etc/passwd"', "#include </etc/shadow>"])
def test_the_compiler_reads_no_file_of_ours(line: str) -> None:
    got = compiled(f"{line}\n{VECTOR_ADD}")
    assert not got.ok and "generations" not in got.log and "root:" not in got.log


@needs_hip
def test_a_compilation_without_end_is_stopped() -> None:
    endless = "template <int N> struct S { static constexpr int v = S<N - 1>::v + S<N - 2>::v; };\n"
    source = (
        f"{endless}constexpr long f(long n) {{ return n < 2 ? n : f(n - 1) + f(n - 2); }}\nstatic_assert(f(60) > 0);"
    )
    got = hip.compile_hip(source, "gfx942", ["-fconstexpr-steps=2000000000"], 3)
    assert not got.ok and "took longer than 3 s" in got.log and not got.missing


def submission(path: Path) -> tuple[Any, list[Build]]:
    spec = importlib.util.spec_from_file_location("submission", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with recorded_builds.captured() as builds:
        spec.loader.exec_module(module)
    return module, builds


@needs_hip
@pytest.mark.parametrize("path", sorted((ROOT / "problems").glob("*/seeds/hip_*.py")), ids=lambda p: p.parts[-3])
def test_hip_seeds_compile(path: Path) -> None:
    _, (build,) = submission(path)
    got = compiled(hipified(joined(build.sources)), flags=build.flags)
    assert got.ok, got.log
    codes = assembly.read(got.assembly)
    assert codes and all(one.kernel.endswith("_kernel") and one.num_warps == 4 and not one.spills for one in codes)
    assert not any("fp8" in said or "64 lanes" in said for said in findings(codes, "gfx942", path.read_text()))


def test_what_load_inline_is_given_is_recorded_and_not_built() -> None:
    before = cpp_extension.load_inline
    with recorded_builds.captured() as builds:
        made: Any = cpp_extension.load_inline(
            "one", "void f();", cuda_sources=["__global__ void k() {}"], functions="f", extra_cuda_cflags=["-O2"]
        )
        cpp_extension.load_inline("two", ["int g();"], ["// device"], None, ["g", "h"], no_implicit_headers=True)
        x, y = torch.zeros(2), torch.ones(3)
        assert made.f(x, 3, y) is y and made.f(1) is None
    assert cpp_extension.load_inline is before
    sources = (recorded_builds.IMPLICIT, "__global__ void k() {}")
    assert builds[0] == Build(name="one", sources=sources, flags=("-O2",), functions=("f",))
    assert builds[1] == Build(name="two", sources=("// device",), functions=("g", "h"))


def test_files_and_runtime_compilation_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "a.hip").write_text("__global__ void k() {}")
    with recorded_builds.captured() as builds:
        cpp_extension.load("three", [str(tmp_path / "a.hip"), str(tmp_path / "lost.hip")], extra_cuda_cflags=["-g"])
        run, x = torch.cuda._compile_kernel("__global__ void r(float* a) {}", "r"), torch.zeros(1)
        assert run((1, 1, 1), (64, 1, 1), (x,)) is None and run(x, 1) is x
    assert builds[0].sources[0] == "__global__ void k() {}" and "lost.hip" in builds[0].sources[1]
    assert builds[1].functions == ("r",)


def test_cudas_names_become_hips() -> None:
    text = hipified("#include <cuda_runtime.h>\n#include <cuda_bf16.h>\ncudaStream_t s; __nv_bfloat16 x;")
    assert "hip/hip_runtime.h" in text and "hipStream_t" in text and "hip_bfloat16" in text
    assert hipified("__global__ void k() {}") == "__global__ void k() {}"


def test_a_name_cannot_end_its_line() -> None:
    assert joined(["int x;"], 'a"\n#error') == '#line 1 "a___error[0]"\nint x;'


@needs_hip
def test_a_source_without_kernels_has_none() -> None:
    assert read("#include <hip/hip_runtime.h>\nint host() { return 1; }") == []


@needs_cuda
def test_cuda_is_compiled_and_disassembled() -> None:
    source = VECTOR_ADD.replace("#include <hip/hip_runtime.h>", "")
    got = cuda.compile_cuda(source, "sm_90", ["--use_fast_math"])
    assert got.ok, got.log
    (add,) = assembly.read(got.assembly, 8)
    assert (add.kernel, add.arch, add.accesses["LDG 32"]) == ("add", "sm_90", 2)
    wrong = cuda.compile_cuda(source.replace("b[i];", "b[i]"), "sm_90", [])
    assert not wrong.ok and not wrong.missing and "kernel.cu(6): error" in wrong.log
    assert cuda.compile_cuda(source, "sm_20", []).missing


ASKED = """#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>

__global__ void k(int* x) {
    int i = threadIdx.x, all = 0;
    CALL
}
"""


@pytest.mark.parametrize(
    "call",
    [
        "x[i] = __shfl_sync(0xffffffff, i, 0);",
        "x[i] = __shfl_xor_sync(0xffffffffu, i, 1);",
        "x[i] = __shfl_up_sync(~0u, i, 1);",
        "x[i] = __ballot_sync(0xffffffff, i) == 3;",
        "int mask = -1; x[i] = __any_sync(mask, i);",
        "x[i] = __all_sync(1, i);",
        "x[i] = __match_any_sync(0xffffffff, i) == 3;",
        "x[i] = __match_any_sync(~0ull, (short)i) == 3;",
        "x[i] = __match_all_sync(0xffffffffu, i, &all) == 3;",
        "x[i] = __reduce_add_sync(0xffffffff, i);",
        "__syncwarp(0xffffffff);",
        "x[i] = cooperative_groups::tiled_partition<128>(cooperative_groups::this_thread_block()).size();",
    ],
)
def test_what_rocm_s_headers_assert_is_refused_with_the_submission_s_line(call: str) -> None:
    text = ASKED.replace("CALL", call)
    whole = f'SOURCE = r"""{text}"""'
    found = hip.compile_hip(joined([text], "ext"), "gfx942", [])
    said = messages.summary(found.log, "ext", [text], whole)
    assert not found.ok and said.startswith("kernel.py, line 6: static assertion failed"), said or found.log
    assert call.split(";")[0] in said


@needs_hip
def test_assembly_that_is_too_long_to_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hip, "TEXT_BYTES", 1 << 10)
    got = compiled(VECTOR_ADD + "// for this test alone: its result may be kept\n")
    assert not got.ok and re.match(r"error: its assembly has \d+ MiB, and \d+ may be read", got.log)


@needs_hip
def test_long_device_functions_become_part_of_their_kernel_as_with_hipcc() -> None:
    steps = "".join(f" x = x * {n}.5f + y; y = y * x - {n}.25f;" for n in range(400))
    function = "__device__ float steps(float x) { float y = x;" + steps + " return x + y; }"
    source = (
        f"#include <hip/hip_runtime.h>\n{function}\n"
        + """
    __global__ void three(float* x) {
      float v = x[threadIdx.x];
      if (v > 1) v = steps(v);
      if (v > 2) v = steps(v);
      if (v > 3) v = steps(v);
      x[threadIdx.x] = v;
    }
    """
    )
    assert "s_swappc" not in compiled(source).assembly
    assert "s_swappc" in compiled(source, flags=("-O0",)).assembly


@needs_hip
def test_masks_of_64_bits_suit_the_headers() -> None:
    calls = "__syncwarp(); __syncwarp(~0ull); x[i] = __shfl_sync(__activemask(), i, 0) + __any_sync(~0ul, i);"
    calls += (
        " x[i] += __match_all_sync(-1LL, i, &all) + __reduce_max_sync(0xffffffffffffffff, i) + __all_sync(~0ull, i);"
    )
    assert hip.compile_hip(ASKED.replace("CALL", calls), "gfx942", []).ok


def test_the_first_error_is_told_with_its_own_line() -> None:
    text = "#include <hip/hip_runtime.h>\n__global__ void k(int* x) { x[0] = y; }\n"
    found = hip.compile_hip(joined(["int a;", text], "two"), "gfx942", [])
    said = messages.summary(found.log, "two", ["int a;", text], f"import x\n{text}")
    assert said == "kernel.py, line 3: use of undeclared identifier 'y'"
    apart = messages.summary(found.log, "two", ["int a;", text], "put together")
    assert apart == "two[1], line 2: use of undeclared identifier 'y'"
    assert messages.summary("no word of the compiler's", "two", [text], text) == ""
