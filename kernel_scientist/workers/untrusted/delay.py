"""A kernel that keeps all of a GPU busy for a known time. Behind it calls are queued: their launch is not timed.

While Python launches a kernel, the GPU would be idle, and the time between two events would contain the launch: 25 to
80 us in a worker on a host with an H100. Behind a delay the GPU starts one piece of work as soon as the one before has
ended.

The delay fills every thread slot of the GPU: a kernel on another stream finds no room beside it, and cannot run before
the time starts. It touches no memory, so the caches stay cold. This module imports torch and triton; import it only
where they are used.
"""

# Triton would interpret annotations of a kernel's arguments.
# ruff: noqa: ANN001, ANN202
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
import ctypes
import time
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

DELAY_US = 300.0
"""Wanted length: longer than launches from Python. With 100, those of some rows took longer on the H100's host."""
TRIAL_STEPS = 1 << 14
SETTLE_S = 0.03
"""Seconds of work before the steps are chosen: the GPU's clock rises with work, and all workers are to delay alike."""
BLOCK_THREADS, THREADS_PER_UNIT = 1024, 2048
"""Threads of a block; of a multiprocessor (NVIDIA) or compute unit (CDNA), which two blocks fill."""


@triton.jit(do_not_specialize=["steps"])
def _steps(out, steps):
    """Take so many steps, each of which waits for the one before."""
    state = steps
    for _ in range(steps):
        state = state * 1664525 + 1013904223
    if state == 123456789:
        tl.store(out, state)


class Delay(NamedTuple):
    """The compiled kernel, as a runtime library launches it."""

    function: int
    blocks: int
    threads: int
    shared_bytes: int
    arguments: Any
    """Array of the addresses of the arguments."""
    kept: tuple[Any, ...]
    """What the addresses point to."""


def compiled(device: str) -> Delay:
    """Compile the kernel, and choose its steps so that it takes about `DELAY_US` on this GPU now."""
    units = int(torch.cuda.get_device_properties(device).multi_processor_count)
    blocks, lanes = units * (THREADS_PER_UNIT // BLOCK_THREADS), 64 if torch.version.hip else 32
    out = torch.zeros(1, dtype=torch.int32, device=device)

    def launch(steps: int) -> Any:
        kernel: Any = _steps[(blocks,)]
        return kernel(out, steps, num_warps=BLOCK_THREADS // lanes)

    kernel, times_us = launch(1), list[float]()
    end_s = time.monotonic() + SETTLE_S
    while time.monotonic() < end_s:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        launch(TRIAL_STEPS)
        end.record()
        torch.cuda.synchronize()
        times_us.append(start.elapsed_time(end) * 1000)
    steps = ctypes.c_int32(max(1, round(TRIAL_STEPS * DELAY_US / max(min(times_us), 1.0))))
    pointer, scratch = ctypes.c_uint64(out.data_ptr()), ctypes.c_uint64()
    # Triton appends the addresses of scratch memory, of which this kernel needs none; how many depends on its version
    values = (pointer, steps, scratch, scratch)
    arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    return Delay(kernel.function, blocks, BLOCK_THREADS, kernel.metadata.shared, arguments, (out, values))
