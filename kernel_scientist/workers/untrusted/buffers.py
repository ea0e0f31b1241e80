"""A kernel's inputs in its worker: tensors over memory that the verifier fills. See `shared`.

Where a tensor stays where it was, it stays the same object, so that nothing but its values tells a call from the last.
What a kernel may not write is read-only. On a GPU torch allocates, values come masked with the message, and what was
written to is found afterwards. Imports only the standard library and torch.
"""

import ctypes
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import torch

from kernel_scientist.sandbox import protocol
from kernel_scientist.workers.native import NativeHarness
from kernel_scientist.workers.untrusted import outputs
from kernel_scientist.workers.untrusted.gpu_runtime import Runtime

GUARD_BYTES = 512
"""On a GPU, on either side; torch's own blocks there begin at such a multiple, and kernels may count on it."""
MASKED_BYTES = 16
"""What is masked at once."""
READ, READ_WRITE = 1, 3
POPULATE_WRITE = 23
_libc: Any = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Inbox:
    """The shared memory as the worker sees it."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._pages = mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        self._tensors: dict[tuple[protocol.Form, int], torch.Tensor] = {}
        self._pages_of: dict[tuple[int, int], bool] = {}
        """Pages, by beginning and length, that are ready: whether to be written to."""

    def decode(self, spec: protocol.Header) -> Any:
        """Return the inputs that `spec` describes; their values are not there yet."""
        return protocol.decode(spec, [], self._place)

    def _place(self, form: protocol.Form, spot: bytearray | protocol.Spot) -> torch.Tensor:
        assert isinstance(spot, protocol.Spot)
        key = (form, spot.offset)
        if key not in self._tensors:
            self._tensors[key] = form.shaped(self._flat(form, spot.offset))
        pages = (spot.pages, spot.length)
        if self._pages_of.get(pages) is not form.writable:
            self._ready(*pages, form.writable)
            self._pages_of[pages] = form.writable
        return self._tensors[key]

    def _flat(self, form: protocol.Form, offset: int) -> torch.Tensor:
        if form.bytes == 0:
            return torch.empty(0, dtype=form.dtype)
        return torch.frombuffer(self._pages, dtype=torch.uint8, count=form.bytes, offset=offset).view(form.dtype)

    def _ready(self, offset: int, length: int, writable: bool) -> None:
        """Take the page faults now, and forbid writing where nothing is to be written: who does ends there.

        Once for pages that one tensor has for good. It keeps out mistakes; a kernel that wants to can undo it.
        """
        start = self._base + offset
        self._protect(start, length, READ_WRITE)
        if _libc.madvise(start, length, POPULATE_WRITE) != 0:  # Linux before 5.14
            for page in range(start, start + length, mmap.PAGESIZE):
                ctypes.c_char.from_address(page).value = ctypes.c_char.from_address(page).value
        if not writable:
            self._protect(start, length, READ)

    def _protect(self, start: int, length: int, access: int) -> None:
        if _libc.mprotect(start, length, access) != 0:
            raise OSError(ctypes.get_errno(), "mprotect refused")


class GpuInbox:
    """Inputs on a GPU, each in a block of its own between guard bands; what is only read comes masked (`masks`).

    Nothing forbids to write to them there, or beside them: digests tell an honest mistake, and the verifier knows what
    they must be.
    """

    def __init__(
        self, device: str, native: NativeHarness, runtime: Runtime, trash: Any, turn: Callable[..., None]
    ) -> None:
        """`trash`, `turn`: see `masks`, which is imported only where there is a GPU."""
        self._device, self._shim, self._runtime, self._trash, self._turn = device, native, runtime, trash, turn
        self._masked: dict[int, list[torch.Tensor]] = {}
        self._kept: dict[int, list[torch.Tensor]] = {}

    def decode(self, slot: int, spec: protocol.Header, buffers: list[bytearray]) -> Any:
        """Return the inputs whose blocks a message holds. Nobody can read them yet."""
        masked, kept = self._masked[slot], self._kept[slot] = list[torch.Tensor](), list[torch.Tensor]()

        def place(form: protocol.Form, data: bytearray | protocol.Spot) -> torch.Tensor:
            if isinstance(data, protocol.Spot):
                raise protocol.WireError("a place in shared memory, where there is none")
            block = torch.frombuffer(data, dtype=torch.int64).to(self._device, copy=True)
            raw = block.view(torch.uint8)
            inner, end = raw[GUARD_BYTES : GUARD_BYTES + form.bytes], 2 * GUARD_BYTES + form.bytes
            if form.writable:
                kept.extend((raw[:GUARD_BYTES], raw[GUARD_BYTES + form.bytes : end]))
            else:
                kept.append(raw[:end])
                masked.append(block)
            return form.shaped(inner.view(form.dtype))

        return protocol.decode(spec, buffers, place)

    def unmask(self, slots: Sequence[int], keys: Sequence[int]) -> None:
        """Make inputs what they are, once. `keys`: two for each tensor that is masked, slot by slot."""
        pairs = list(zip(keys[::2], keys[1::2], strict=True))
        for slot in slots:
            blocks, self._masked[slot] = self._masked[slot], []
            self._turn(blocks, pairs[: len(blocks)])
            pairs = pairs[len(blocks) :]
        self._shim.gpu_synchronize()

    def sweep(self, key: int) -> int:
        """Make the GPU's caches cold; return the sum that tells it (`masks`). The device is idle then."""
        self._runtime.release_cache()
        told = self._trash.sweep(key)
        self._shim.gpu_synchronize()
        return int(told)

    def digest(self, slot: int) -> int:
        """Return what tells the inputs that a kernel may not write, and what lies beside them all."""
        copies = [bytearray(part.numel()) for part in self._kept[slot]]
        for copy, part in zip(copies, self._kept[slot], strict=True):
            self._shim.read_gpu(outputs.address(copy), part.data_ptr(), len(copy))
        return self._shim.pin([(outputs.address(copy), len(copy)) for copy in copies])


def block(data: bytes | bytearray | memoryview, guard: bytes) -> bytearray:
    """Return values between guard bands (`guard` holds both), as many bytes as a mask covers."""
    end = GUARD_BYTES + len(data)
    made = bytearray(-(-(end + GUARD_BYTES) // MASKED_BYTES) * MASKED_BYTES)
    made[:GUARD_BYTES], made[GUARD_BYTES:end] = guard[:GUARD_BYTES], data
    made[end : end + GUARD_BYTES] = guard[GUARD_BYTES:]
    return made


def pieces(block: bytearray, size: int, writable: bool) -> list[tuple[int, int]]:
    """Return at which (address, size) a block of `size` bytes of values lies that must stay as it is."""
    start = outputs.address(block)
    if writable:
        return [(start, GUARD_BYTES), (start + GUARD_BYTES + size, GUARD_BYTES)]
    return [(start, 2 * GUARD_BYTES + size)]


def on_device(device: str) -> Callable[[protocol.Form, bytearray | protocol.Spot], torch.Tensor]:
    """Return what places inputs on a GPU: their values are in the message."""
    return lambda form, data: protocol.tensor(form, data).to(device)
