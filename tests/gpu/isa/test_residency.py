"""How many waves fit a SIMD: what we read from assembly is what LLVM prints as `; Occupancy:` behind each kernel."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_scientist.gpu.capture import preview
from kernel_scientist.gpu.capture.code_findings import findings
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.hardware import occupancy
from kernel_scientist.records.evaluation import CodeObject
from tests.conftest import ROOT
from tests.gpu.isa.test_assembly import FP8, GEMM, RMSNORM, compiled, seed
from tests.gpu.toolchains.test_hip import needs_hip, submission

pytest.importorskip("triton")
GEMM_TYPES = ["*fp32", "*fp32", "*bf16", "i32", "i32", "i32"]
KERNELS = """
#include <hip/hip_runtime.h>
#define KERNEL(...) extern "C" __global__ __launch_bounds__(256) __VA_ARGS__ void
KERNEL() usual(float* p) { p[threadIdx.x] *= 2; }
KERNEL(__attribute__((amdgpu_waves_per_eu(1, 1)))) alone(float* p) { p[threadIdx.x] *= 2; }
KERNEL(__attribute__((amdgpu_waves_per_eu(3, 3)))) three(float* p) { p[threadIdx.x] *= 2; }
KERNEL() local(float* p) {
  __shared__ float s[4096];
  s[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = s[255 - threadIdx.x];
}
__device__ __attribute__((noinline)) float many(float* p) {
  float s[120], sum = 0;
#pragma unroll
  for (int i = 0; i < 120; i++) s[i] = p[i * 64];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 120; i++) sum += s[i] * s[119 - i] * p[i];
  return sum;
}
KERNEL() calls(float* p) { p[threadIdx.x] = many(p + threadIdx.x); }
"""


@pytest.fixture(scope="module", autouse=True)
def _triton_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield


def stated(text: str) -> dict[str, int]:
    """Return what LLVM prints behind each kernel's code."""
    code = re.sub(r"^\.Lfunc_end\d+:|^\s+\.size\b.*", "", text, flags=re.MULTILINE)
    _, *parts = re.split(r"^(\w+):", code, flags=re.MULTILINE)
    found = {
        n: re.search(r"^; Occupancy: (\d+)", part, re.MULTILINE)
        for n, part in zip(parts[::2], parts[1::2], strict=True)
    }
    return {name: int(said[1]) for name, said in found.items() if said is not None}


def agrees(text: str) -> list[CodeObject]:
    found = assembly.read(text)
    assert [code.occupancy for code in found] == list(stated(text).values()) != []
    return found


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("waves", [0, 1, 2, 4, 8])
def test_a_gemm_that_asks_for_waves(arch: str, waves: int) -> None:
    kernel = seed("fp8-blockwise-gemm/seeds/triton_tiled.py").gemm_kernel
    constants = GEMM | {"BLOCK_N": 32}
    text, _ = compiled(kernel, [FP8[arch]] * 2 + GEMM_TYPES, constants, arch, num_warps=4, waves_per_eu=waves)
    (code,) = agrees(text)
    assert f".vgpr_count:     {code.used}" in text and code.used <= code.registers
    assert not waves or code.occupancy == waves


def test_few_waves_reserve_more_registers_than_the_kernel_uses_and_both_are_told() -> None:
    kernel = seed("rmsnorm/seeds/triton_tiled.py").rmsnorm_kernel
    types = ["*bf16", "*fp32", "*bf16", "i32", "i32", "fp32"]
    (usual,) = agrees(compiled(kernel, types, RMSNORM, "gfx942", num_warps=4)[0])
    (alone,) = agrees(compiled(kernel, types, RMSNORM, "gfx942", num_warps=4, waves_per_eu=1)[0])
    assert usual.registers == usual.used < 128 and usual.occupancy >= 4
    assert alone.used < 128 and alone.registers == 257 and alone.limited_by == "registers"
    assert occupancy.resident("gfx942", *alone.needs) == 1
    assert f"{alone.vgpr} + 0 registers of 257 reserved" in findings([alone], "gfx942", "")[-1]


@needs_hip
def test_kernels_of_one_file_each_have_their_own() -> None:
    got = hip.compile_hip(KERNELS, "gfx942", [], 240)
    assert got.ok, got.log
    found = {code.kernel: code for code in agrees(got.assembly)}
    assert [found[name].occupancy for name in ("usual", "alone", "three", "local")] == [8, 1, 3, 4]
    assert found["calls"].used > 64 and found["calls"].occupancy < 8
    assert found["alone"].used == found["usual"].used < 8 and found["alone"].registers == 257


@needs_hip
@pytest.mark.parametrize("path", sorted((ROOT / "problems").glob("*/seeds/hip_*.py")), ids=lambda p: p.parts[-3])
def test_hip_seeds(path: Path) -> None:
    _, (build,) = submission(path)
    got = hip.compile_hip(preview.hipified(preview.joined(build.sources)), "gfx942", [*build.flags], 240)
    assert agrees(got.assembly)


def test_without_a_descriptor_what_is_used_counts() -> None:
    kernel = seed("rmsnorm/seeds/triton_tiled.py").rmsnorm_kernel
    types = ["*bf16", "*fp32", "*bf16", "i32", "i32", "fp32"]
    text, _ = compiled(kernel, types, RMSNORM, "gfx942", num_warps=4, waves_per_eu=1)
    (code,) = assembly.read(re.sub(r"(next_free_.gpr).*", r"\1 max(a, b)", text))
    assert code.registers == code.used and code.occupancy >= 4
