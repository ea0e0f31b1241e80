"""The memory that evaluator and worker share."""

import json
import os
from pathlib import Path

import pytest
import torch

from kernel_scientist.records.errors import SetupError
from kernel_scientist.workers import fork_server
from kernel_scientist.workers.native import SLOTS, NativeHarness
from kernel_scientist.workers.places import Content
from kernel_scientist.workers.shared_memory import SharedMemory
from kernel_scientist.workers.worker_pool import native_library


@pytest.mark.parametrize("slot", [0, 1, SLOTS, SLOTS + 1])
def test_nothing_is_left_in_it_for_the_next_worker(slot: int) -> None:
    """Whether outputs were copied there or not."""
    memory = SharedMemory(1 << 20, NativeHarness(str(native_library())))
    spot = memory.place(slot, 0, 64, fresh=True)
    memory.write(slot, 0, Content(torch.ones(64, dtype=torch.uint8), protected=True))
    assert any(memory.read(spot.offset, 64)) and not memory.damage(slot)
    memory.reset()
    assert not any(memory.read(spot.offset - memory.GUARD_BYTES, 64 + 2 * memory.GUARD_BYTES))
    memory.close()


def test_inputs_that_are_too_large_are_one_sentence() -> None:
    memory = SharedMemory(1 << 20, NativeHarness(str(native_library())))
    with pytest.raises(SetupError, match=r"half of harness\.memory_mib: raise it"):
        memory.place(0, 0, 1 << 20, fresh=True)
    memory.close()


def test_the_oldest_kept_files_are_dropped_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "MOST_KEPT_OF_ALL", 100 << 10)
    kept = [tmp_path / f"kept-{name}" for name in "abc"]
    for number, place in enumerate(kept):
        place.mkdir()
        (place / "code").write_bytes(bytes(60 << 10))
        os.utime(place, (number, number))
    fork_server._drop_oldest(kept)
    assert [place.name for place in kept if place.exists()] == ["kept-c"]


def test_kept_files_do_not_replace_those_that_a_worker_has_loaded(tmp_path: Path) -> None:
    kept, folder = tmp_path / "kept", tmp_path / "worker"
    for place, text in ((kept, "older"), (folder, "in use")):
        (place / "cache").mkdir(parents=True)
        (place / "cache/launcher.so").write_text(text)
    (kept / "cache/kernel.cubin").write_text("code")
    listed = {"child_paths": {"kernel.cubin": str(kept / "cache/kernel.cubin")}}
    (kept / "cache/__grp__kernel.json").write_text(json.dumps(listed))
    loaded = (folder / "cache/launcher.so").stat()
    fork_server._fill(kept, folder)
    assert (folder / "cache/launcher.so").stat() == loaded and (folder / "cache/kernel.cubin").read_text() == "code"
    listed = json.loads((folder / "cache/__grp__kernel.json").read_text())
    assert listed == {"child_paths": {"kernel.cubin": str(folder / "cache/kernel.cubin")}}
