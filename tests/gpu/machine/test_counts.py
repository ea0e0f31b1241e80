"""Counts of kernels in HIP whose bytes, lines, conflicts, waits and products follow from arithmetic."""

import functools
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kernel_scientist.gpu.capture import inspect
from kernel_scientist.gpu.machine import launch
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.counts import Counts, Sample
from kernel_scientist.gpu.machine.dispatch import KernelLaunch, Options
from kernel_scientist.gpu.machine.memory import Memory
from kernel_scientist.gpu.machine.sampler import BUDGET, SHARING, Sampler
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.hardware.gpus import MI300X
from tests.gpu.machine import harness

TOOLS = hip.find()
pytestmark = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
Array = np.ndarray[Any, np.dtype[Any]]
BOTH = Sample.SPREAD | Sample.SHARING

COPY = """
extern "C" __global__ void kern(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i * STRIDE];
}
"""
SAME = 'extern "C" __global__ void kern(const float* a, float* b, int n) { b[threadIdx.x] = a[threadIdx.x] + n; }'
LDS = """
extern "C" __global__ void kern(TYPE* b, int n) {
  __shared__ volatile TYPE t[64 * STRIDE];
  t[threadIdx.x * STRIDE] = n;
  b[threadIdx.x] = t[threadIdx.x * STRIDE];
}
"""
WIDE = """
extern "C" __global__ void kern(float4* b, int n) {
  __shared__ float4 t[64 * STRIDE];
  t[threadIdx.x * STRIDE] = b[threadIdx.x];
  __syncthreads();
  b[threadIdx.x] = t[(threadIdx.x + n) % 64 * STRIDE];
}
"""
PRODUCTS = """
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef float float16 __attribute__((ext_vector_type(16)));
extern "C" __global__ void kern(const half4* a, float* b, int n) {
  float16 sum = {};
  for (int i = 0; i < n; i++) sum = __builtin_amdgcn_mfma_f32_32x32x8f16(a[threadIdx.x], a[threadIdx.x], sum, 0, 0, 0);
  for (int i = 0; i < 16; i++) b[i * 64 + threadIdx.x] = sum[i];
}
"""
TRIPS = """
extern "C" __global__ void kern(const int* trips, const float* a, float* b) {
  float sum = 0;
  int last = trips[blockIdx.x];
#pragma unroll 1
  for (int i = 0; i < last; i++) sum += a[i * 64 + threadIdx.x];
  b[blockIdx.x * 64 + threadIdx.x] = sum;
}
"""
CHASE = """
extern "C" __global__ void kern(const int* a, int* b, int n) {
  int p = threadIdx.x;
  for (int i = 0; i < 8; i++) p = a[p];
  b[threadIdx.x] = p;
}
"""
AT_ONCE = """
extern "C" __global__ void kern(const int* a, int* b, int n) {
  int p = 0;
  for (int i = 0; i < 8; i++) p += a[i * 64 + threadIdx.x];
  b[threadIdx.x] = p;
}
"""


@functools.cache
def built(source: str, *flags: str) -> Code:
    compiled = hip.compile_hip("#include <hip/hip_runtime.h>\n" + source, "gfx942", list(flags))
    assert compiled.ok, compiled.log
    return Code(harness.machine(), compiled.assembly)


def counted(
    code: Code,
    blocks: int,
    size: int,
    arrays: Sequence[Array],
    n: int | None = 0,
    samples: tuple[Sample, ...] | None = None,
    threads: int = 1,
    most: int = 0,
) -> Counts:
    """Count a launch; without other samples every workgroup belongs to both. `most`: as `Options.most_sharing`."""
    memory = Memory()
    for array in arrays:
        memory.add(array.ctypes.data, array.nbytes)
    arguments = b"".join(struct.pack("<Q", array.ctypes.data) for array in arrays)
    arguments += b"" if n is None else struct.pack("<i", n)
    chosen = Options(threads, samples=samples or (BOTH,) * blocks, most_sharing=most)
    result = launch.run(KernelLaunch(code, "kern", (blocks, 1, 1), (size, 1, 1), arguments), memory, chosen)
    assert not result.findings and result.counts is not None
    return result.counts


def of(code: Code, counts: Counts, *begins: str) -> dict[str, int]:
    """The counts of all instructions that begin with one of some words."""
    here = [n for n, one in enumerate(code.listing.statements) if one.mnemonic.startswith(begins)]
    return {name: int(counts.accessed[name][here].sum()) for name in counts.accessed.dtype.names or ()}


LOADS = ("global_load", "buffer_load", "flat_load")


@pytest.mark.parametrize(
    ("stride", "n", "asked", "lines"),
    [(1, 1024, 4096, 32), (16, 1024, 4096, 512), (1, 100, 400, 4), (2, 1000, 4000, 63)],
    ids=["coalesced", "strided by 64 B", "masked", "every other element, masked"],
)
def test_bytes_and_lines_of_a_copy(stride: int, n: int, asked: int, lines: int) -> None:
    code, a, b = built(COPY, f"-DSTRIDE={stride}"), np.ones(1024 * stride, np.float32), np.zeros(1024, np.float32)
    counts = counted(code, 4, 256, (a, b), n)
    found = of(code, counts, *LOADS)
    assert (found["asked"], found["lines"], found["requests"]) == (asked, lines, lines)
    stored = of(code, counts, "global_store")
    assert (stored["asked"], stored["lines"]) == (4 * n, -(-n * 4 // 128))
    assert counts.touched == tuple(sorted((x.ctypes.data, x.nbytes) for x in (a, b)))


def test_lines_that_workgroups_share_count_once() -> None:
    code, a, b = built(SAME), np.ones(1024, np.float32), np.zeros(1024, np.float32)
    counts = counted(code, 4, 1024, (a, b))
    assert (counts.shared, counts.alone) == (64, 256)
    none = (Sample(0), Sample.SHARING, Sample.SPREAD, Sample(0))
    counts = counted(code, 4, 1024, (a, b), samples=none, threads=2)
    assert (counts.shared, counts.alone, counts.waves) == (64, 64, 16)
    assert of(code, counts, *LOADS)["lines"] == 32, "of the one workgroup that stands for the grid"


def test_one_that_is_counted_for_its_lines_only_ends_after_some_instructions() -> None:
    """Those that stand for the grid run to their end."""
    code, loops = built(TRIPS), 4000
    arrays = np.full(4, loops, np.int32), np.ones(loops * 64, np.float32), np.zeros(256, np.float32)
    only = (Sample.SHARING,) * 4
    whole, cut = (counted(code, 4, 64, arrays, None, only, most=most) for most in (0, 2000))
    assert whole.alone > 8 * loops and 0 < cut.alone < whole.alone / 5
    assert cut.shared / cut.alone == pytest.approx(whole.shared / whole.alone, rel=0.02)
    both = counted(code, 4, 64, arrays, None, most=2000)
    assert (both.shared, both.alone) == (whole.shared, whole.alone) and len(set(both.work)) == 1


def test_the_sample_of_what_is_shared_has_a_budget() -> None:
    code, trips = built(TRIPS), np.ones(4, np.int32)
    asked: list[Options] = []

    def run(chosen: Options) -> launch.LaunchResult:
        asked.append(chosen)
        return launch.run(one, memory, chosen)

    memory, arrays = Memory(), (trips, np.ones(64, np.float32), np.zeros(256, np.float32))
    for array in arrays:
        memory.add(array.ctypes.data, array.nbytes)
    one = KernelLaunch(
        code, "kern", (4, 1, 1), (64, 1, 1), b"".join(struct.pack("<Q", array.ctypes.data) for array in arrays)
    )
    Sampler(inspect.facts(MI300X)).sampled(run, one)
    assert [chosen.most_sharing for chosen in asked] == [0, BUDGET // SHARING]


def test_l1_holds_what_a_workgroup_reads_again() -> None:
    code, a, b = built(CHASE), np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    found = of(code, counted(code, 1, 64, (a, b)), *LOADS)
    assert (found["executed"], found["lines"], found["requests"]) == (8, 16, 2)


@pytest.mark.parametrize(
    ("kind", "stride", "cycles"),
    [("float", 1, 0), ("float", 32, 62), ("float", 33, 0), ("float", 2, 2), ("double", 1, 0), ("double", 16, 60)],
)
def test_conflicts_between_banks(kind: str, stride: int, cycles: int) -> None:
    code, b = built(LDS, f"-DTYPE={kind}", f"-DSTRIDE={stride}"), np.zeros(64, np.float64)
    counts = counted(code, 1, 64, (b,))
    for way in (("ds_write", "flat_store"), ("ds_read", "flat_load")):
        assert of(code, counts, *way)["conflicts"] == cycles, "flat accesses reach LDS as well"


@pytest.mark.parametrize(("stride", "cycles"), [(1, 0), (8, 56), (9, 0)])
def test_conflicts_of_accesses_of_16_bytes(stride: int, cycles: int) -> None:
    code = built(WIDE, f"-DSTRIDE={stride}")
    counts = counted(code, 1, 64, (np.zeros(256, np.float32),))
    found = of(code, counts, "ds_write_b128")
    assert (found["executed"], found["conflicts"]) == (1, cycles), "8 lanes at a time"


def test_products_are_counted_as_often_as_they_run() -> None:
    code, a, b = built(PRODUCTS), np.ones(256, np.float16), np.zeros(1024, np.float32)
    counts = counted(code, 1, 64, (a, b), 37)
    assert of(code, counts, "v_mfma_f32_32x32x8")["executed"] == 37
    assert b[0] == 37 * 8


def test_trips_that_depend_on_data() -> None:
    code, trips = built(TRIPS), np.array([3, 0, 11, 5], np.int32)
    a, b = np.ones(64 * 11, np.float32), np.zeros(256, np.float32)
    counts = counted(code, 4, 64, (trips, a, b), None)
    assert of(code, counts, *LOADS)["asked"] == 19 * 256
    assert of(code, counts, *LOADS)["lines"] == 19 * 2
    assert len(counts.work) == 4 and counts.work[2] == max(counts.work) and sum(counts.work) == counts.steps
    assert counts.rounds == 19 == counts.accessed["waits"].sum(), "each trip waits for its load"


def test_loads_that_are_under_way_together_are_waited_for_once() -> None:
    a, b = np.arange(512, dtype=np.int32), np.zeros(64, np.int32)
    assert counted(built(AT_ONCE), 1, 64, (a, b)).rounds == 1
    assert counted(built(CHASE), 1, 64, (a, b)).rounds == 8


def test_what_other_waves_do_does_not_age_a_waves_loads() -> None:
    a, b = np.arange(1024, dtype=np.int32), np.zeros(256, np.int32)
    one, four = (counted(built(AT_ONCE), 1, size, (a, b)) for size in (64, 256))
    assert four.waves == 4 * one.waves and four.steps == 4 * one.steps
    assert four.overlapped == 4 * one.overlapped > 0


def test_counting_changes_no_value_and_costs_no_memory_when_it_is_off() -> None:
    code, a, b = built(AT_ONCE), np.arange(512, dtype=np.int32), np.zeros(64, np.int32)
    counted(code, 1, 64, (a, b))
    with_counts = b.copy()
    memory = Memory()
    for array in (a, b):
        memory.add(array.ctypes.data, array.nbytes)
    arguments = struct.pack("<QQi", a.ctypes.data, b.ctypes.data, 0)
    result = launch.run(KernelLaunch(code, "kern", (1, 1, 1), (64, 1, 1), arguments), memory)
    assert result.counts is None and np.array_equal(b, with_counts)
