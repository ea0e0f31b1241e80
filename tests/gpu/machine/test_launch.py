"""Kernels in HIP, compiled to gfx942's assembly and executed: values against numpy, faults with their places."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.gpu.machine import launch
from kernel_scientist.gpu.machine.allocations import Allocations
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.dispatch import KernelLaunch, Options
from kernel_scientist.gpu.machine.executor import Executor
from kernel_scientist.gpu.machine.launch import Fault, LaunchResult, NotSimulatedError
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.memory import Memory
from kernel_scientist.gpu.toolchains import hip
from tests.gpu.machine import harness

TOOLS = hip.find()
pytestmark = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
Array = np.ndarray[Any, np.dtype[Any]]

ALL = """
#include <hip/hip_runtime.h>
__device__ __constant__ float table[4] = {1, 2, 3, 4};
__device__ int counter = 7;
__device__ __noinline__ float helper(float x, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) s += x * i;
  return s;
}
extern "C" __global__ void kern(const float* a, float* b, int n, float s) {
  __shared__ float t[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  t[threadIdx.x] = i < n ? a[i] : 0.f;
  __syncthreads();
  if (i < n) {
    b[i] = t[255 - threadIdx.x] / s + table[i & 3] + helper(s, i % 40);
    atomicAdd(&counter, 1);
  }
}
"""
DOUBLES = """
#include <hip/hip_runtime.h>
extern "C" __global__ void kern(const double* a, const double* b, double* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { c[i] = a[i] / b[i]; c[n + i] = sqrt(a[i] * a[i]); c[2 * n + i] = (double)(long long)(a[i] * 1e3); }
}
"""
RECURSION = """
#include <hip/hip_runtime.h>
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" __global__ void kern(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }
"""
FIBONACCI = (0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89)
PRINTS = """
#include <hip/hip_runtime.h>
#include <cstdio>
extern "C" __global__ void kern(int* out, int n) {
  if (threadIdx.x == n) printf("%d of %s\\n", n, "these");
  out[threadIdx.x] = 1;
}
"""
LANES = """
#include <hip/hip_fp16.h>
extern "C" __global__ void kern(int* out) {
  __shared__ unsigned int counter;
  if (threadIdx.x == 0) counter = 0;
  __syncthreads();
  out[threadIdx.x] = atomicInc(&counter, 7);
  out[64 + threadIdx.x] = (int)__match_any_sync(~0ull, threadIdx.x % 16);
  out[128 + threadIdx.x] = __reduce_add_sync(~0ull, (int)threadIdx.x);
  out[192 + threadIdx.x] = (int)__half2float(__shfl_xor(__float2half((float)threadIdx.x), 1));
}
"""
SUM = """
#include <hip/hip_runtime.h>
extern "C" __global__ void kern(const int* a, int* out, int n) {
  extern __shared__ int part[];
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i];
  for (int way = 32; way; way /= 2) sum += __shfl_xor(sum, way);
  if (threadIdx.x % 64 == 0) part[threadIdx.x / 64] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < blockDim.x / 64; w++) sum += part[w];
    atomicAdd(out, sum);
  }
}
"""
LOCK = """
#include <hip/hip_runtime.h>
extern "C" __global__ void kern(int* flags, int* out, int n) {
  int me = gridDim.x - 1 - blockIdx.x;
  if (threadIdx.x == 0) {
    while (__hip_atomic_load(flags, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) != me) __builtin_amdgcn_s_sleep(1);
    out[me] = me ? out[me - 1] + me : 0;
    __hip_atomic_store(flags, me + 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  }
}
"""
ENDLESS = """
#include <hip/hip_runtime.h>
extern "C" __global__ void kern(volatile int* flags, int* out, int n) { while (flags[0] == 0) out[1]++; out[0] = n; }
"""
NEXT = """
#include <hip/hip_runtime.h>
extern "C" __global__ void kern(volatile int* flags, int* out, int n) {
  if (threadIdx.x == 0) {
    while (flags[(blockIdx.x + 1) % n] == 0) ;
    flags[blockIdx.x] = 1;
  }
  __syncthreads();
  out[blockIdx.x] = 1;
}
"""
BEFORE = """
#include <hip/hip_runtime.h>
extern "C" __global__ void kern(volatile int* flags, int* out, int n) {
  if (blockIdx.x) while (flags[blockIdx.x - 1] == 0) __builtin_amdgcn_s_sleep(1);
  flags[blockIdx.x] = 1;
  out[blockIdx.x] = 1;
}
"""
PATIENT = """
#include <hip/hip_runtime.h>
extern "C" __global__ void kern(volatile int* flags, int* out, int n) {
  if (blockIdx.x == 0) while (flags[1] == 0) atomicAdd((int*)flags, 1);  // its registers are always the same
  else { while (flags[0] < n) ; flags[1] = 1; }
  out[blockIdx.x] = 1;
}
"""


MEETING = """
#include <hip/hip_runtime.h>
extern "C" __global__ void kern(int* flags, int* out, int n) {
  __shared__ int seen;
  if (threadIdx.x == 0) atomicAdd(flags, 1);
  do {
    if (threadIdx.x == 0) seen = atomicAdd(flags, 0);
    __syncthreads();
    int all = seen;
    __syncthreads();
    if (all == n) break;
  } while (true);
  out[blockIdx.x * blockDim.x + threadIdx.x] = flags[0];
}
"""


@pytest.fixture(scope="module")
def machine() -> Library:
    return harness.machine()


def built(machine: Library, source: str, *flags: str) -> Code:
    compiled = hip.compile_hip(source, "gfx942", list(flags))
    assert compiled.ok, compiled.log
    return Code(machine, compiled.assembly)


def one_launch(code: Code, blocks: int, size: int, arguments: bytes, lds: int = 0) -> KernelLaunch:
    return KernelLaunch(code, "kern", (blocks, 1, 1), (size, 1, 1), arguments, lds)


def run(
    code: Code, blocks: int, size: int, arrays: Sequence[Array], rest: bytes, lds: int = 0, **options: Any
) -> LaunchResult:
    memory = Memory()
    for array in arrays:
        memory.add(array.ctypes.data, array.nbytes)
    arguments = b"".join(struct.pack("<Q", array.ctypes.data) for array in arrays) + rest
    return launch.run(one_launch(code, blocks, size, arguments, lds), memory, Options(**options))


@pytest.mark.parametrize("level", ["-O1", "-O3"])
def test_calls_constants_shared_memory_and_variables_of_the_device(machine: Library, level: str) -> None:
    n, scale = 1000, np.float32(1.7)
    a, b = np.random.default_rng(1).random(1024, np.float32), np.zeros(n, np.float32)
    code = built(machine, ALL, level)
    found = run(code, 4, 256, (a, b), struct.pack("<if", n, scale))
    assert not found.findings and not found.gave_up
    at, helped = np.arange(n), np.zeros(40, np.float32)
    for count in range(40):
        sum_ = np.float32(0)
        for i in range(count):
            sum_ = np.float32(np.float64(sum_) + np.float64(scale) * i)  # a fused step: one rounding
        helped[count] = sum_
    inside = np.where(np.arange(1024) < n, a, 0).reshape(4, 256)[:, ::-1].reshape(-1)[:n]
    right = inside / scale + np.array([1, 2, 3, 4], np.float32)[at & 3] + helped[at % 40]
    assert np.array_equal(b, right)
    place = code.symbol("counter")
    assert place is not None and place[1] == 4
    start = code.program.symbols["counter"][0]
    assert code.program.data[start : start + 4].view(np.int32)[0] == 7 + n, "it keeps its value from launch to launch"


PLACES = """
#include <hip/hip_runtime.h>
extern "C" __global__ void kern(int* out) { atomicAdd(&out[%s], 1); }
"""


@pytest.mark.parametrize(
    ("place", "found"),
    [("threadIdx.x", [12] * 8), ("threadIdx.x + threadIdx.y * 8", [3] * 32), ("threadIdx.z", [32] * 3)],
)
def test_a_kernel_knows_of_its_place_in_a_workgroup_what_it_asks_for(
    machine: Library, place: str, found: list[int]
) -> None:
    """v0 has x, and y and z only if the descriptor asks for them: code that needs x alone masks nothing."""
    out = np.zeros(128, np.int32)
    memory, code = Memory(), built(machine, PLACES % place)
    memory.add(out.ctypes.data, out.nbytes)
    asked = KernelLaunch(code, "kern", (1, 1, 1), (8, 4, 3), struct.pack("<Q", out.ctypes.data))
    assert not launch.run(asked, memory, Options()).findings
    assert out.tolist() == found + [0] * (len(out) - len(found))


def test_recursion_has_a_stack(machine: Library) -> None:
    out = np.zeros(64, np.int32)
    found = run(built(machine, RECURSION), 1, 64, (out,), b"")
    assert not found.findings and np.array_equal(out, [FIBONACCI[n % 12] for n in range(64)])


@pytest.mark.parametrize("options", [{}, {"backwards": True}, {"threads": 2}], ids=str)
def test_workgroups_whose_waves_meet_at_barriers_while_they_wait_let_others_run(
    machine: Library, options: dict[str, Any]
) -> None:
    groups = 300
    flags, out = np.zeros(1, np.int32), np.zeros(groups * 256, np.int32)
    bound = {"most_instructions": 100_000_000, **options}
    found = run(built(machine, MEETING), groups, 256, (flags, out), struct.pack("<i", groups), **bound)
    assert not found.gave_up and not found.findings and (out == groups).all()


def test_a_call_of_the_host_is_refused(machine: Library) -> None:
    data = torch.zeros(64, dtype=torch.int32)
    executor = Executor(machine, 1, allocations=Allocations([data], (0,), 0))
    with pytest.raises(NotSimulatedError, match=r"a call of the host.*printf, malloc and assert"):
        executor.run(one_launch(built(machine, PRINTS), 1, 64, struct.pack("<Qi", data.data_ptr(), 5)))
    executor.take()
    executor.run(one_launch(built(machine, PRINTS), 1, 64, struct.pack("<Qi", data.data_ptr(), 99)))
    assert (data == 1).all() and not executor.take()[0]


def test_counters_that_wrap_votes_and_sums_of_lanes(machine: Library) -> None:
    out = np.zeros(64 * 4, np.int32)
    found = run(built(machine, LANES), 1, 64, (out,), b"")
    lane, got = np.arange(64), out.reshape(4, 64)
    assert not found.findings
    assert sorted(got[0]) == sorted(lane % 8)
    assert (got[1].view(np.uint32) == [sum(1 << n for n in range(k % 16, 32, 16)) for k in lane]).all()
    assert (got[2] == lane.sum()).all() and (got[3] == (lane ^ 1)).all()


def test_a_division_of_doubles_is_ieee(machine: Library) -> None:
    bits = np.random.default_rng(2).integers(0, 1 << 63, (2, 4096), np.uint64)
    corners = [0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1.7e308, 2.3e-308]
    a, b = bits.view(np.float64)
    a[:121], b[:121] = np.repeat(corners, 11), np.tile(corners, 11)
    c = np.zeros(3 * 4096)
    with np.errstate(all="ignore"):
        found = run(built(machine, DOUBLES), 16, 256, (a, b, c), struct.pack("<i", 4096))
        assert not found.findings
        right = a / b
        tiny = np.abs(right) < np.finfo(float).tiny  # the last step scales what is rounded already
        assert np.array_equal(np.where(tiny, 0, c[:4096]), np.where(tiny, 0, right), equal_nan=True)
        assert np.abs(c[:4096] - right)[tiny].max() <= np.finfo(float).smallest_subnormal
        assert np.array_equal(c[4096:8192], np.sqrt(a * a), equal_nan=True)


@pytest.mark.parametrize("options", [{}, {"backwards": True}, {"threads": 2, "seed": 5}], ids=str)
def test_a_reduction_agrees_whatever_the_order(machine: Library, options: dict[str, Any]) -> None:
    a, out = np.random.default_rng(3).integers(-1000, 1000, 10_007, np.int32), np.zeros(1, np.int32)
    found = run(built(machine, SUM), 5, 256, (a, out), struct.pack("<i", len(a)), 16, **options)
    assert not found.findings and out[0] == a.sum()


def test_workgroups_that_wait_for_each_other_take_turns(machine: Library) -> None:
    flags, out = np.zeros(1, np.int32), np.zeros(40, np.int32)
    found = run(built(machine, LOCK), 40, 64, (flags, out), struct.pack("<i", 40))
    assert not found.findings and not found.gave_up
    assert np.array_equal(out, np.cumsum(np.arange(40))), "the first workgroup waits for the last"


def test_a_kernel_without_an_end_is_given_up(machine: Library) -> None:
    flags, out = np.zeros(1, np.int32), np.zeros(2, np.int32)
    found = run(built(machine, ENDLESS), 2, 64, (flags, out), struct.pack("<i", 1), most_instructions=100_000)
    assert found.gave_up and found.instructions > 100_000 and not found.findings, "it counts, and is never the same"


@pytest.mark.parametrize("options", [{}, {"backwards": True}, {"threads": 3}], ids=str)
@pytest.mark.parametrize("first", [0, 1], ids=["nobody ends", "the first one's flag is set"])
def test_workgroups_that_wait_for_ever_are_told_with_what_they_wait_for(
    machine: Library, options: dict[str, Any], first: int
) -> None:
    groups = 300
    flags, out = np.zeros(groups, np.int32), np.zeros(groups, np.int32)
    flags[0] = first
    found = run(built(machine, NEXT), groups, 128, (flags, out), struct.pack("<i", groups), **options)
    assert found.instructions < 50_000_000 and found.started == groups
    if first:
        assert not found.gave_up and not found.findings and out.all()
        return
    assert found.gave_up and found.findings
    for finding in found.findings:
        assert finding.fault is Fault.DEADLOCK and "load" in finding.statement.mnemonic and finding.places[0][1] == 5
        assert (finding.address - flags.ctypes.data) // 4 == (finding.group[0] + 1) % groups


def test_workgroups_that_wait_for_later_ones_need_room_on_the_gpu(machine: Library) -> None:
    groups = 100
    code, numbers = built(machine, NEXT), struct.pack("<i", groups)
    for resident in (groups, groups - 1):
        flags, out = np.zeros(groups, np.int32), np.zeros(groups, np.int32)
        flags[0] = 1
        found = run(code, groups, 64, (flags, out), numbers, resident=resident)
        assert found.started == resident and found.gave_up == (resident < groups) and out.any() == out.all()
        assert out.all() != found.gave_up
    for resident in (1, 7):
        flags, out = np.zeros(groups, np.int32), np.zeros(groups, np.int32)
        found = run(built(machine, BEFORE), groups, 64, (flags, out), numbers, resident=resident)
        assert not found.gave_up and out.all() and found.started == groups, "those before it have ended"


@pytest.mark.parametrize("threads", [1, 2])
def test_waves_that_change_memory_while_their_registers_stay_are_no_deadlock(machine: Library, threads: int) -> None:
    flags, out = np.zeros(2, np.int32), np.zeros(2, np.int32)
    found = run(built(machine, PATIENT), 2, 64, (flags, out), struct.pack("<i", 10_000), threads=threads)
    assert not found.gave_up and not found.findings and out.all()


def test_only_the_workgroups_that_are_asked_for_run(machine: Library) -> None:
    a, b = np.ones(1024, np.float32), np.zeros(1024, np.float32)
    found = run(built(machine, ALL), 4, 256, (a, b), struct.pack("<if", 1024, 1.0), groups=(3, 1))
    assert not found.findings
    assert not b[:256].any() and b[256:512].all() and not b[512:768].any() and b[768:].all()


def test_what_lies_outside_of_all_tensors_is_found_with_its_line_and_touched_by_nobody(machine: Library) -> None:
    room = np.full(2048, 9, np.float32)
    a, b = room[:1000], np.zeros(1000, np.float32)
    found = run(built(machine, ALL), 4, 256, (a, b), struct.pack("<if", 1024, 1.0))
    faults = {finding.fault: finding for finding in found.findings}
    assert set(faults) == {Fault.READ_OUTSIDE, Fault.WRITE_OUTSIDE}
    read, written = faults[Fault.READ_OUTSIDE], faults[Fault.WRITE_OUTSIDE]
    assert read.times == written.times == 24 and read.group == (3, 0, 0) and read.wave == 3 and read.lane == 40
    assert read.address == a.ctypes.data + 4000 and "load" in read.statement.mnemonic
    assert (room[1000:] == 9).all()


def test_a_store_to_what_may_only_be_read_is_found(machine: Library) -> None:
    a, b, memory = np.ones(256, np.float32), np.zeros(256, np.float32), Memory()
    memory.add(a.ctypes.data, a.nbytes), memory.add(b.ctypes.data, b.nbytes, writable=False)
    arguments = struct.pack("<QQif", a.ctypes.data, b.ctypes.data, 256, 1.0)
    found = launch.run(one_launch(built(machine, ALL), 1, 256, arguments), memory)
    assert [finding.fault for finding in found.findings] == [Fault.WRITE_READ_ONLY] and not b.any()


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30), st.booleans()), max_size=8))
def test_each_address_belongs_to_one_entry_also_where_tensors_overlap(places: list[tuple[int, int, bool]]) -> None:
    allowed = {a for start, size, _ in places for a in range(start, start + size)}
    writable = {a for start, size, may in places if may for a in range(start, start + size)}
    rows = Memory().table(places).tolist()
    assert sorted(a for start, size, *_ in rows for a in range(start, start + size)) == sorted(allowed)
    assert {a for start, size, may, _ in rows if may for a in range(start, start + size)} >= writable
    assert rows == sorted(rows)


def test_a_tensor_and_a_view_of_its_middle_are_both_used(machine: Library) -> None:
    a, out, memory = np.ones(256, np.float32), np.zeros(256, np.float32), Memory()
    for array in (a, a[40:60], out):
        memory.add(array.ctypes.data, array.nbytes)
    arguments = struct.pack("<QQif", a.ctypes.data, out.ctypes.data, 256, 1.0)
    found = launch.run(one_launch(built(machine, ALL), 1, 256, arguments), memory)
    assert not found.findings and out.all()


def test_a_failed_assertion_is_found(machine: Library) -> None:
    a, out = np.ones(64, np.int32), np.zeros(1, np.int32)
    broken = SUM.replace("atomicAdd(out, sum);", "if (sum == 64) __builtin_trap();")
    found = run(built(machine, broken), 1, 64, (a, out), struct.pack("<i", 64), 16)
    assert [finding.fault for finding in found.findings] == [Fault.TRAP]
    found = run(built(machine, broken), 1, 64, (2 * a, out), struct.pack("<i", 64), 16)
    assert not found.findings


def test_how_often_each_instruction_ran_is_exact(machine: Library) -> None:
    a, out = np.ones(6400, np.int32), np.zeros(1, np.int32)
    code = built(machine, SUM)
    found = run(code, 5, 256, (a, out), struct.pack("<i", 6400), 16)
    ran = {s.mnemonic: int(n) for s, n in zip(code.listing.statements, found.executed, strict=True) if n}
    assert ran["s_barrier"] == ran["s_endpgm"] == 20 and found.instructions == found.executed.sum()
    atomics = [n for s, n in zip(code.listing.statements, found.lanes, strict=True) if "atomic" in s.mnemonic]
    assert sum(atomics) == 5
