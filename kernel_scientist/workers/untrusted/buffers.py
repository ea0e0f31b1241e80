"""A kernel's inputs in its worker: tensors over memory that the evaluator fills (`shared_memory`).

A tensor that stays at its address stays the same object, so that only its values distinguish one call from the next.
Read-only inputs are mapped read-only. On a GPU torch allocates, values arrive encrypted with the message, and writes to
read-only inputs are detected afterwards. Imports only the standard library and torch.
"""

import ctypes
import hashlib
import mmap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from kernel_scientist.sandbox import protocol
from kernel_scientist.workers.native import NativeHarness
from kernel_scientist.workers.untrusted import outputs
from kernel_scientist.workers.untrusted.gpu_runtime import Runtime

GUARD_BYTES = 512
"""Bytes of a guard band on a GPU. It keeps torch's alignment, on which kernels may rely."""
MASKED_BYTES = 16
"""Bytes per unit of encryption."""
READ, READ_WRITE = 1, 3
POPULATE_WRITE = 23
_libc: Any = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Inbox:
    """The worker's view of the shared memory."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._pages = mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        self._tensors: dict[tuple[protocol.Form, int], torch.Tensor] = {}
        self._populated = set[tuple[int, int]]()
        """(offset, length) of pages that are already mapped."""

    def decode(self, spec: protocol.Header) -> Any:
        """Return the inputs that `spec` describes; their values arrive later."""
        return protocol.decode(spec, [], self._place)

    def _place(self, form: protocol.Form, spot: bytearray | protocol.Spot) -> torch.Tensor:
        assert isinstance(spot, protocol.Spot)
        if (form, spot.offset) not in self._tensors:
            flat = torch.empty(0, dtype=form.dtype)
            if form.bytes:
                raw = torch.frombuffer(self._pages, dtype=torch.uint8, count=form.bytes, offset=spot.offset)
                flat = raw.view(form.dtype)
            self._tensors[form, spot.offset] = form.shaped(flat)
        self._prepare(spot.pages, spot.length, form.writable)
        return self._tensors[form, spot.offset]

    def _prepare(self, offset: int, length: int, writable: bool) -> None:
        """Map the pages now, and write-protect read-only inputs, so that a kernel that writes there crashes.

        The protection catches mistakes only, because a kernel can undo it; guard bands and verified outputs decide.
        """
        start = self.address + offset
        if (offset, length) not in self._populated:
            self._populated.add((offset, length))
            self._protect(start, length, READ_WRITE)
            if _libc.madvise(start, length, POPULATE_WRITE) != 0:
                for page in range(start, start + length, mmap.PAGESIZE):  # Linux before 5.14
                    ctypes.c_char.from_address(page).value = ctypes.c_char.from_address(page).value
        self._protect(start, length, READ_WRITE if writable else READ)

    def _protect(self, start: int, length: int, access: int) -> None:
        if _libc.mprotect(start, length, access) != 0:
            raise OSError(ctypes.get_errno(), "mprotect refused")


class GpuInbox:
    """Inputs on a GPU, each in a block of its own between guard bands; read-only ones arrive encrypted.

    GPU memory is not write-protected; the evaluator compares the digest of inputs and guard bands afterwards.
    """

    def __init__(
        self, device: str, native: NativeHarness, runtime: Runtime, sweep_memory: Any, turn: Callable[..., None]
    ) -> None:
        """`sweep_memory`, `turn`: see `input_masking`, which is imported only where there is a GPU."""
        self._device, self._native, self._runtime = device, native, runtime
        self._sweep_memory, self._turn = sweep_memory, turn
        self._masked: dict[int, list[torch.Tensor]] = {}
        self._guarded: dict[int, list[torch.Tensor]] = {}

    def decode(self, slot: int, spec: protocol.Header, buffers: list[bytearray]) -> Any:
        """Return the inputs of a message, still encrypted."""
        masked, guarded = self._masked[slot], self._guarded[slot] = list[torch.Tensor](), list[torch.Tensor]()

        def place(form: protocol.Form, data: bytearray | protocol.Spot) -> torch.Tensor:
            if isinstance(data, protocol.Spot):
                raise protocol.WireError("a place in shared memory, where there is none")
            block = torch.frombuffer(data, dtype=torch.int64).to(self._device, copy=True)
            raw = block.view(torch.uint8)
            inner, end = raw[GUARD_BYTES : GUARD_BYTES + form.bytes], 2 * GUARD_BYTES + form.bytes
            if form.writable:
                guarded.extend((raw[:GUARD_BYTES], raw[GUARD_BYTES + form.bytes : end]))
            else:
                guarded.append(raw[:end])
                masked.append(block)
            return form.shaped(inner.view(form.dtype))

        return protocol.decode(spec, buffers, place)

    def unmask(self, slots: Sequence[int], keys: Sequence[int]) -> None:
        """Decrypt inputs, once. `keys`: two for each encrypted tensor, slot by slot."""
        pairs = list(zip(keys[::2], keys[1::2], strict=True))
        for slot in slots:
            blocks, self._masked[slot] = self._masked[slot], []
            self._turn(blocks, pairs[: len(blocks)])
            pairs = pairs[len(blocks) :]
        self._native.gpu_synchronize()

    def sweep(self, key: int) -> int:
        """Flush the GPU's caches; return the checksum that proves it (`input_masking`). The device is idle then."""
        self._runtime.release_cache()
        checksum = self._sweep_memory.sweep(key)
        self._native.gpu_synchronize()
        return int(checksum)

    def digest(self, slot: int) -> int:
        """Return the digest of the read-only inputs and of all guard bands."""
        copies = [bytearray(part.numel()) for part in self._guarded[slot]]
        for copy, part in zip(copies, self._guarded[slot], strict=True):
            self._native.read_gpu(outputs.address(copy), part.data_ptr(), len(copy))
        return digest(copies)


def digest(parts: Iterable[bytes | bytearray | memoryview]) -> int:
    """Return a digest of bytes."""
    total = hashlib.blake2b(digest_size=8)
    for part in parts:
        total.update(part)
    return int.from_bytes(total.digest(), "little")


def block(data: bytes | bytearray | memoryview, guard: bytes) -> bytearray:
    """Return values between guard bands (`guard` holds both), padded to a multiple of the unit of encryption."""
    end = GUARD_BYTES + len(data)
    made = bytearray(-(-(end + GUARD_BYTES) // MASKED_BYTES) * MASKED_BYTES)
    made[:GUARD_BYTES], made[GUARD_BYTES:end] = guard[:GUARD_BYTES], data
    made[end : end + GUARD_BYTES] = guard[GUARD_BYTES:]
    return made


def guarded_parts(block: bytearray, size: int, writable: bool) -> list[bytes]:
    """Return the parts of a block of `size` bytes of values that must stay as they are."""
    if writable:
        return [bytes(block[:GUARD_BYTES]), bytes(block[GUARD_BYTES + size : 2 * GUARD_BYTES + size])]
    return [bytes(block[: 2 * GUARD_BYTES + size])]


def on_device(device: str) -> Callable[[protocol.Form, bytearray | protocol.Spot], torch.Tensor]:
    """Return a function that places inputs from a message on a GPU."""
    return lambda form, data: protocol.tensor(form, data).to(device)
