"""The memory that evaluator and worker share."""

import pytest
import torch

from kernel_scientist.workers.native import SLOTS, NativeHarness
from kernel_scientist.workers.pool import native_library
from kernel_scientist.workers.shared_memory import GUARD_BYTES, SharedMemory


@pytest.mark.parametrize("slot", [0, 1, SLOTS, SLOTS + 1])
def test_nothing_is_left_in_it_for_the_next_worker(slot: int) -> None:
    """Whether outputs were copied there or not."""
    memory, native = SharedMemory(1 << 20), NativeHarness(str(native_library()))
    spot = memory.place(slot, 0, 64, fresh=True)
    memory.write(native, slot, 0, torch.ones(16))
    assert any(memory.read(spot.offset, 64)) and memory.intact(slot)
    memory.reset()
    assert not any(memory.read(spot.offset - GUARD_BYTES, 64 + 2 * GUARD_BYTES))
    memory.close()
