"""Checking runs of launches that need more instructions than are checked of a call."""

import struct

import pytest
import torch

from kernel_scientist.gpu.machine import findings
from kernel_scientist.gpu.machine.checking import Checks
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.dispatch import KernelLaunch
from kernel_scientist.gpu.machine.executor import Executor
from kernel_scientist.gpu.machine.undefined import CheckedAllocations
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.gpu.toolchains.quoted_sources import Sources
from tests.gpu.machine import harness

TOOLS = hip.find()
pytestmark = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
ADDS = """
#include <hip/hip_runtime.h>
extern "C" __global__ void kern(const int* a, int* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] += a[i];
}
"""
GROUPS, SIZE, PATTERN = 500, 64, 0x5C
N = GROUPS * SIZE - 20


class Call:
    """One call of a submission with an input, and a tensor that it updates or that nobody has written."""

    def __init__(self, left: int, unwritten: bool = False) -> None:
        self.a, self.b = torch.arange(N, dtype=torch.int32), torch.ones(N, dtype=torch.int32)
        self.checks = Checks(harness.machine(), left=left)
        memory = CheckedAllocations([self.a, self.b], (1,), self.checks, seed=7)
        if unwritten:
            memory.poison(self.b)
        self.executor = Executor(harness.machine(), 1, None, 7, PATTERN, memory, self.checks)

    def run(self, source: str = ADDS) -> None:
        compiled = hip.compile_hip(source, "gfx942", [])
        assert compiled.ok, compiled.log
        arguments = struct.pack("<QQi", self.a.data_ptr(), self.b.data_ptr(), N)
        code = Code(harness.machine(), compiled.assembly)
        self.executor.run(KernelLaunch(code, "kern", (GROUPS, 1, 1), (SIZE, 1, 1), arguments))


@pytest.mark.parametrize(("left", "whole"), [(1_000_000, True), (100, False), (0, False)])
def test_a_launch_has_one_effect_however_much_of_it_is_checked(left: int, whole: bool) -> None:
    call = Call(left)
    call.run()
    assert torch.equal(call.b, call.a + 1)
    defects, (launched,) = call.executor.take()
    assert not defects and launched.run == GROUPS
    assert (launched.checked == GROUPS) == whole and (launched.checked > 0) == (left > 0)
    assert call.checks.left < left or left == 0


def test_what_is_checked_first_lies_at_the_edges() -> None:
    call = Call(100)
    call.run(ADDS.replace("if (i < n)", "if (i <= n)"))
    defects, (launched,) = call.executor.take()
    assert 0 < launched.checked < 20
    assert any(one.kind == "out-of-bounds write" and "guard" in one.note for one in defects), defects


def test_what_nobody_wrote_holds_a_pattern_where_it_cannot_be_followed() -> None:
    call = Call(0, unwritten=True)
    call.run()
    unwritten = int.from_bytes(bytes([PATTERN] * 4), "little")
    assert torch.equal(call.b, call.a + unwritten)


def test_a_later_launch_is_checked_with_what_is_left() -> None:
    call = Call(1_000_000)
    call.run()
    left = call.checks.left
    call.run()
    assert call.checks.left < left < 1_000_000
    assert torch.equal(call.b, 2 * call.a + 1)


def test_a_launch_that_is_given_up_leaves_nothing_undefined() -> None:
    """The next one, which is checked, finds all defined that the plain run wrote."""
    call = Call(100, unwritten=True)
    call.run(ADDS.replace("b[i] +=", "b[i] ="))
    call.checks.left = 1_000_000
    call.run()
    assert torch.equal(call.b, 2 * call.a)
    assert not findings.defects(call.checks, Sources())


@pytest.mark.parametrize("left", [100, 1_000_000])
def test_code_whose_registers_cannot_be_followed_runs_plainly(left: int) -> None:
    indexed = 'asm volatile("s_set_gpr_idx_on s0, 0x1\\ns_set_gpr_idx_off"); if (i < n)'
    call = Call(left)
    call.run(ADDS.replace("if (i < n)", indexed))
    _, (launched,) = call.executor.take()
    assert launched.checked == 0 and launched.run == GROUPS and torch.equal(call.b, call.a + 1)
