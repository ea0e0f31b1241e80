"""What `test_triton_checks.py` runs in a process of its own: kernels whose programs wait for each other.

The GPU has two units here. Prints, as JSON, by kernel and number of programs what stops it; empty if nothing does.
"""

import json
import sys
from dataclasses import replace
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

GPU = replace(facts(gpus.MI300X), units=2)
EXECUTOR = Executor(library.loaded(Path(sys.argv[1])), 1, GPU)


@triton.jit
def barrier(count, out, programs):
    tl.atomic_add(count, 1)
    while tl.atomic_add(count, 0) < programs:
        pass
    tl.store(out + tl.program_id(0), 1)


@triton.jit
def after_earlier_ones(count, out, programs):
    while tl.atomic_add(count, 0) < tl.program_id(0):
        pass
    tl.store(out + tl.program_id(0), 1)
    tl.atomic_add(count, 1)


@triton.jit
def lock(count, out, programs):
    while tl.atomic_cas(count, 0, 1) == 1:
        pass
    tl.store(out + tl.program_id(0), 1)
    tl.atomic_xchg(count, 0)


@triton.jit
def for_later_ones(count, out, programs):
    tl.store(out + tl.program_id(0), 1)
    if tl.program_id(0) % 2 == 1:
        tl.atomic_add(count, 1)
    else:
        while tl.atomic_add(count, 0) < programs // 2:
            pass


@triton.jit
def loaded_once(count, out, programs):
    tl.store(out + tl.program_id(0), 1)

    while tl.load(count, volatile=True) < programs:
        pass
    tl.atomic_add(count, 1)


def examine(kernel, programs: int, checked: bool = False) -> str:
    count, out = torch.zeros(1, dtype=torch.int32), torch.zeros(programs, dtype=torch.int32)
    checks = Checks(EXECUTOR.library)
    EXECUTOR.allocations = memory = CheckedAllocations([count, out], [0, 1], checks, 1)
    EXECUTOR.checks = checks if checked else None
    try:
        with pretended(GPU), memory:
            kernel[(programs,)](count, out, programs)
    except RuntimeError as error:
        return str(error)
    return "" if out.all() else "not all programs ran"


def defects(kernel, checked: bool) -> list[list]:
    examine(kernel, 40, checked)
    return [[one.kind, one.source, one.tensor, one.note] for one in EXECUTOR.take()[0]]


def main() -> None:
    TritonLaunches(GPU, EXECUTOR)
    found = {}
    for kernel in (barrier, after_earlier_ones, lock, for_later_ones):
        found[kernel.fn.__name__] = [examine(kernel, 16), examine(kernel, 40)]
        EXECUTOR.take()
    for kernel in (barrier, for_later_ones, loaded_once):
        found[f"defects of {kernel.fn.__name__}"] = [defects(kernel, checked) for checked in (True, False)]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
