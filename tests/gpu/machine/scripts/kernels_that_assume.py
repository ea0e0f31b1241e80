"""What `test_triton_checks.py` runs in a process of its own: kernels whose `tl.assume` is true or false.

Prints, as JSON, the kind and line of each defect by kernel. A line that ends in `# false` holds a false assumption.
"""

import json
import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

from kernel_scientist.gpu.capture.inspect import facts
from kernel_scientist.gpu.fake.device import pretended
from kernel_scientist.gpu.machine import library
from kernel_scientist.gpu.machine.checking import Checks
from kernel_scientist.gpu.machine.executor import Executor
from kernel_scientist.gpu.machine.triton_launches import TritonLaunches
from kernel_scientist.gpu.machine.undefined import CheckedAllocations
from kernel_scientist.hardware import gpus

GPU = facts(gpus.MI300X)
EXECUTOR = Executor(library.loaded(Path(sys.argv[1])), 1)


@triton.jit
def stride_of_zero(x, y, n, stride, B: tl.constexpr):
    tl.assume(stride > 0)  # false
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + tl.program_id(0) * stride + i, mask=i < n), mask=i < n)


@triton.jit
def multiple(n):
    tl.assume(n % 16 == 0)  # false
    return n


@triton.jit
def in_a_helper(x, y, n, stride, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < multiple(n)), mask=i < n)


@triton.jit
def in_a_loop(x, y, n, stride, B: tl.constexpr):
    for j in range(n):
        tl.assume(j < 7)  # false
        tl.store(y + j, tl.load(x + j))


@triton.jit
def of_a_loaded_value(x, y, n, stride, B: tl.constexpr):
    first = tl.load(x)
    tl.assume(first < 0)  # false
    i = tl.arange(0, B)
    tl.store(y + i, first + tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def both(x, y, n, stride, B: tl.constexpr):
    tl.assume((n >= 0) & (stride >= 1))  # false
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def of_a_program(x, y, n, stride, B: tl.constexpr):
    tl.assume(tl.program_id(0) < 2)  # false
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=(i < n) & (tl.program_id(0) == 0))


@triton.jit
def of_a_constant(x, y, n, stride, B: tl.constexpr):
    tl.assume(B >= 256)  # false
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def sound(x, y, n, stride, B: tl.constexpr):
    tl.assume(stride >= 0)
    tl.assume(n <= B)
    i = tl.arange(0, B)
    if n > 1000:
        tl.assume(n > 1000)
        tl.store(y + i, 0.0)
    for j in range(n):
        tl.assume(j >= 0)
        tl.store(y + j, tl.load(x + j * 1 + stride))


KERNELS = (stride_of_zero, in_a_helper, in_a_loop, of_a_loaded_value, both, of_a_program, of_a_constant, sound)


def examine(launches, kernel) -> dict:
    """Launch a kernel where launches are checked, and where they are not."""
    x, y, found = torch.rand(100), torch.zeros(100), {}
    for launches.assumptions.checked in (True, False, True):
        EXECUTOR.checks = Checks(EXECUTOR.library) if launches.assumptions.checked else None
        EXECUTOR.allocations = memory = CheckedAllocations([x, y], [1], EXECUTOR.checks or Checks(EXECUTOR.library), 1)
        with pretended(GPU), memory:
            kernel[(3,)](x, y, 100, 0, B=128)
        defects = [(one.kind, one.line) for one in EXECUTOR.take()[0]]
        found.setdefault("checked" if launches.assumptions.checked else "unchecked", []).append(defects)
    return found


def main() -> None:
    launches = TritonLaunches(GPU, EXECUTOR)
    json.dump({kernel.fn.__name__: examine(launches, kernel) for kernel in KERNELS}, sys.stdout)


if __name__ == "__main__":
    main()
