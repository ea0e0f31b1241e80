"""The native part's side of a GPU, on a stand-in for a GPU's runtime library: what it binds, reads and copies.

No GPU is timed here, and nothing of torch's is replaced: the stand-in is a library with the runtime's functions, whose
streams are times. What a real runtime does with them is for the tests marked `gpu`.
"""

import ctypes
import os
import pickle
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_scientist.workers.native import Completion, NativeHarness, Reading
from kernel_scientist.workers.runtime import Runtime, RuntimeLibraryError
from kernel_scientist.workers.shared_memory import SharedMemory
from kernel_scientist.workers.worker_pool import native_library
from tests.workers import standin

MS = 1_000_000
TRIES = 10
"""Readings until one is not disturbed: the stand-in keeps real time, and the host may be busy at any moment."""
OUTPUTS = 1 << 16
"""Where outputs are copied to."""


@pytest.fixture
def device() -> Any:
    library: Any = ctypes.CDLL(str(standin.library()))
    library.work.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
    return library


@pytest.fixture
def native(device: Any, tmp_path: Path) -> Iterator[NativeHarness]:
    own = shutil.copy(native_library(), tmp_path / "native.so")  # another file is another library, without a GPU
    native = NativeHarness(str(own))
    native.bind(torch.Tensor)
    native.bind_gpu(Runtime(device, "standin", device, "standin").addresses())
    delay = standin.delay()  # it lives as long as the native part has its address
    native.bind_delay(*delay[:5])
    yield native


def timed(
    native: NativeHarness, kernel: Callable[[Any], Any], inputs: list[Any], queued: bool = False
) -> tuple[list[Any], Reading, Completion, bytes]:
    """Make a row of calls as a worker does, while another process is its evaluator.

    Another process, because a worker at the barrier holds the interpreter's lock. Returns what either side measured
    and the copied outputs.
    """
    ours, theirs = socket.socketpair()
    memory, (read, write) = SharedMemory(1 << 20, native), os.pipe()
    evaluator = os.fork()
    if evaluator == 0:
        try:
            assert ours.recv(1) == b"r"
            completion = native.run(ours.fileno(), memory.address, iter([20.0, 0.0]).__next__)
            size = sum(size for _, size in completion.places or ())
            os.write(write, pickle.dumps((completion, bytes(memory.read(OUTPUTS, size)))))
            ours.sendall(b"g")
        finally:
            os._exit(0)
    try:
        outbox = memory.address + OUTPUTS, 1 << 16
        outputs, reading, _ = native.row(kernel, None, inputs, theirs.fileno(), memory.address, outbox, queued)
        completion, copied = pickle.loads(os.read(read, 1 << 16))
    finally:
        os.waitpid(evaluator, 0)
        for end in (ours, theirs):
            end.close()
        os.close(read)
        os.close(write)
    return outputs, reading, completion, copied


def test_a_row_lasts_until_all_queued_work_has_ended(native: NativeHarness, device: Any) -> None:
    out = torch.zeros(64, dtype=torch.uint8)

    def kernel(stream: int) -> torch.Tensor:
        device.work(stream, 30_000, out.data_ptr(), 7, 64)
        return out

    outputs, reading, completion, copied = timed(native, kernel, [0])
    assert outputs[0] is out and copied == bytes([7]) * 64 and completion.places == ((out.data_ptr(), 64),)
    assert 30 * MS <= reading.event_ns <= reading.ns <= completion.wall_ns
    _, other, _, _ = timed(native, kernel, [1])  # a stream that no event is recorded on
    assert other.ns >= 30 * MS and other.event_ns < other.ns


def test_an_error_of_the_runtime_at_the_end_of_a_row_is_raised(native: NativeHarness, device: Any) -> None:
    with pytest.raises(RuntimeError, match="error 700 when the call has ended"):
        timed(native, lambda _: device.fail(700), [None])
    timed(native, lambda _: torch.ones(2), [None])
    with pytest.raises(ValueError, match="its own"):
        timed(native, _raise, [None])


def _raise(_: object) -> None:
    raise ValueError("its own")


def test_outputs_are_copied_in_the_order_of_calls(native: NativeHarness) -> None:
    def kernel(value: int) -> list[torch.Tensor]:
        return [torch.full((3,), value, dtype=torch.uint8), torch.full((2, 2), value + 1, dtype=torch.uint8)]

    _, _, completion, copied = timed(native, kernel, [1, 5])
    assert completion.places is not None and [size for _, size in completion.places] == [3, 4, 3, 4]
    assert copied == bytes([1, 1, 1, 2, 2, 2, 2, 5, 5, 5, 6, 6, 6, 6])


def test_queued_calls_are_timed_without_their_launch(native: NativeHarness, device: Any) -> None:
    """The launch takes as long as it likes, as long as the delay keeps the device busy meanwhile."""
    out = torch.zeros(64, dtype=torch.uint8)
    length = ctypes.c_int32(100_000)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(length))
    native.bind_delay(0, 1, 1, 0, arguments)

    def kernel(_: object) -> torch.Tensor:
        time.sleep(0.03)
        device.work(0, 5_000, out.data_ptr(), 7, 64)
        return out

    close = list[tuple[bool, bool]]()
    for _ in range(TRIES):
        _, reading, _, copied = timed(native, kernel, [None], queued=True)
        assert copied == bytes([7]) * 64
        assert reading.ns >= reading.event_ns + reading.ahead_ns
        close.append((abs(reading.event_ns - 5 * MS) < 2000, abs(reading.ahead_ns - 100 * MS) < 20_000))
        if all(close[-1]):
            break
    assert all(close[-1]), close
    _, idle, _, _ = timed(native, kernel, [None])
    assert idle.event_ns >= 35 * MS and idle.ahead_ns == 0


def test_an_output_that_is_no_plain_tensor_has_no_places(native: NativeHarness) -> None:
    assert timed(native, lambda _: {"out": torch.ones(2)}, [None])[2].places is None


def test_a_build_of_torch_without_a_gpu_has_no_runtime() -> None:
    if torch.version.cuda or torch.version.hip:
        pytest.skip("this torch has one")
    with pytest.raises(RuntimeLibraryError, match="no GPU runtime"):
        Runtime.loaded()


IMPORTS = """
import torch

def refuse(*_, **__):
    raise AssertionError("the driver is started before workers are forked")

for name in ("is_available", "device_count", "current_device", "init", "_lazy_init"):
    setattr(torch.cuda, name, refuse)
import kernel_scientist.workers.fork_server
import kernel_scientist.workers.untrusted.main
import kernel_scientist.workers.untrusted.delay
"""


def test_the_fork_server_does_not_start_the_gpus_driver() -> None:
    """A process that was forked after that can neither use the GPU nor start its driver."""
    subprocess.run([sys.executable, "-c", IMPORTS], check=True)
