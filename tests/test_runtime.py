"""The shim's side of a GPU, on a stand-in for a GPU's runtime library: what it binds, reads, shows and finds changed.

No GPU is timed here, and nothing of torch's is replaced: the stand-in is a library with the runtime's functions, whose
streams are threads. What a real runtime does with them is for the tests marked `gpu`.
"""

import ctypes
import os
import pickle
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_scientist.compile import gxx
from kernel_scientist.evaluate.timing.samples import Samples
from kernel_scientist.sandbox import protocol
from kernel_scientist.workers.call import Call
from kernel_scientist.workers.native import (
    GLIMPSE_LINES,
    MOST_PLACES,
    Glimpse,
    NativeHarness,
    Reading,
    Row,
    _Line,
    _Place,
)
from kernel_scientist.workers.untrusted import outputs
from kernel_scientist.workers.untrusted.gpu_runtime import Runtime
from tests import standin

MS = 1_000_000
SHOWN = -1


@pytest.fixture
def device() -> Any:
    library: Any = ctypes.CDLL(str(standin.library()))
    library.work.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
    return library


@pytest.fixture
def native(device: Any, tmp_path: Path) -> NativeHarness:
    own = shutil.copy(gxx.native(), tmp_path / "native.so")  # another file is another library: nobody else's gets a GPU
    native = NativeHarness(str(own))
    native.bind(torch.Tensor, lambda _: None, None)
    native.bind_gpu(Runtime(device, "standin").addresses())
    return native


def test_a_call_lasts_until_all_that_it_queued_has_ended(native: NativeHarness, device: Any) -> None:
    out = torch.zeros(64, dtype=torch.uint8)

    def kernel(stream: int) -> torch.Tensor:
        device.work(stream, 30, out.data_ptr(), 7, 64)
        return out

    returned, reading = native.call(kernel, 0)
    assert returned is out and out.tolist() == [7] * 64
    assert 30 * MS <= reading.event_ns <= reading.ns
    _, beside = native.call(kernel, 1)  # a stream that no event is recorded on
    assert beside.ns >= 30 * MS and beside.event_ns < beside.ns


def test_what_the_runtime_complains_of_at_the_end_of_a_call_is_raised(native: NativeHarness, device: Any) -> None:
    with pytest.raises(RuntimeError, match="error 700 when the call has ended"):
        native.call(lambda _: device.fail(700), None)
    native.call(lambda _: None, None)
    with pytest.raises(ValueError, match="its own"):
        native.call(_raise, None)


def _raise(_: object) -> None:
    raise ValueError("its own")


def timed(native: NativeHarness, call: Callable[[int], Any]) -> tuple[Any, Row]:
    """Make a call as a worker does, given its end of a socket, while another process is its evaluator.

    Another process, because a worker that stands before the gate holds the interpreter's lock.
    """
    ours, theirs = socket.socketpair()
    told, tells = os.pipe()
    evaluator = os.fork()
    if evaluator == 0:
        try:
            assert ours.recv(1) == b"r"
            row = native.row(ours.fileno(), 20, SHOWN, [7, 2**64 - 1])
            seen = row.glimpse
            glimpse = bytes(seen._places), bytes(seen._lines), seen._count, len(seen.places)
            os.write(tells, pickle.dumps((*row[:4], row.swept, row.cpu_ns, *glimpse)))
        finally:
            os._exit(0)
    try:
        output = call(theirs.fileno())
        *figures, swept, cpu, places, lines, count, many = pickle.loads(os.read(told, 1 << 16))
    finally:
        os.waitpid(evaluator, 0)
        for end in (ours, theirs):
            end.close()
        os.close(told)
        os.close(tells)
    seen = (_Place * MOST_PLACES).from_buffer_copy(places), (_Line * GLIMPSE_LINES).from_buffer_copy(lines)
    return output, Row(*figures, Glimpse(*seen, count, many), swept, cpu)


def test_pieces_of_an_output_that_the_verifier_names_are_shown_before_anything_else(
    native: NativeHarness, device: Any
) -> None:
    out = torch.zeros(3, 1000, dtype=torch.uint8)

    def kernel(_: object) -> list[torch.Tensor]:
        device.work(1, 20, out.data_ptr(), 9, out.nbytes)
        return [out[0], out[1:]]

    returned, row = timed(native, lambda end: native.call(kernel, None, end, end, pin=True)[0])
    assert row.ns >= 20 * MS and row.glimpse and row.digest == native.digest
    snapshot = outputs.Snapshot(returned, native, {}, True, -1, row.digest)
    assert snapshot.keep([])
    handed: list[protocol.Buffer] = []
    snapshot.message([], handed)
    places = [(outputs.address(data), len(data)) for data in handed]
    assert [size for _, size in places] == [1000, 2000] and row.glimpse.fits(native, places)
    assert native.pin(places) == row.digest
    handed[1][:] = bytes([5]) * 2000  # type: ignore[index]
    assert not row.glimpse.fits(native, places)


def test_keys_come_when_the_worker_is_roused_and_it_commits_itself_before_the_gate(native: NativeHarness) -> None:
    heard: list[int] = []

    def exercise(_: object) -> None:
        heard.extend(native.keys)
        native.commit(heard[0] + 1)

    native.bind(torch.Tensor, exercise, None)
    _, row = timed(native, lambda end: native.call(lambda _: torch.ones(2), None, end, end, pin=True)[0])
    assert heard[:2] == [7, 2**64 - 1] and row.swept == 8


def test_an_output_without_places_is_pinned_by_the_worker(native: NativeHarness) -> None:
    def call(end: int) -> outputs.Snapshot:
        output, _ = native.call(lambda _: {"out": torch.ones(2)}, None, end, end, pin=True)
        assert native.digest is None
        return outputs.Snapshot(output, native, {}, True, end, native.digest)

    snapshot, row = timed(native, call)
    assert row.digest == snapshot.digest and not row.glimpse


def test_what_is_written_after_a_call_is_seen(native: NativeHarness, device: Any) -> None:
    out = torch.zeros(512, dtype=torch.uint8)
    snapshot = outputs.Snapshot(out, native, {}, on_gpu=True)
    device.work(0, 1, out.data_ptr() + 100, 1, 1)
    assert not snapshot.keep([])


def test_a_build_of_torch_without_a_gpu_has_no_runtime() -> None:
    if torch.cuda.is_available():
        pytest.skip("this torch has one")
    with pytest.raises(RuntimeError, match="no GPU runtime"):
        Runtime.loaded()


def test_what_passes_beyond_a_gpus_events_is_charged() -> None:
    """Work on a stream that no event is on: the device is idle later than the events say."""

    def call(event_us: int, host_us: int) -> Call:
        return Call((Reading(host_us * 1000, 0, 0, 0, event_us * 1000),), (host_us + 30) * 1000, 0, 0, None, 0)

    samples = Samples()
    for block in range(8):
        samples.add("reference", "c", 0, block, call(100, 108 + block % 2))
        samples.add("honest", "c", 0, block, call(50, 58 + block % 2))
        samples.add("beside", "c", 0, block, call(5, 33))
    samples.charge("beside")
    assert all(us == 100 for us in samples.of("reference", "c")) and all(us == 50 for us in samples.of("honest", "c"))
    assert all(24 <= us <= 25 for us in samples.of("beside", "c"))
