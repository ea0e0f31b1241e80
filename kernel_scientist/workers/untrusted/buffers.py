"""A kernel's inputs in its worker: tensors over memory that the evaluator fills (`shared_memory`).

A tensor that stays at its address stays the same object, so that only its values distinguish one call from the next.
Read-only inputs are mapped read-only. On a GPU torch allocates, values arrive encrypted with the message, and writes to
read-only inputs are detected afterwards. `Runtime` is the GPU's runtime library. Imports only the standard library and
torch.
"""

import ctypes
import hashlib
import mmap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch

from kernel_scientist.sandbox import protocol
from kernel_scientist.workers.native import NativeHarness
from kernel_scientist.workers.untrusted import outputs

AMD_SWEEP_BYTES, LEAST_SWEEP_BYTES = 768 << 20, 128 << 20
GUARD_BYTES = 512
"""Bytes of a guard band on a GPU. It keeps torch's alignment, on which kernels may rely."""
MASKED_BYTES = 16
"""Bytes per unit of encryption."""
LIBRARIES = {"libcudart": "cuda", "libamdhip64": "hip"}
"""Prefixes of the library's name and of its functions."""
FUNCTIONS = ("EventCreate", "EventRecord", "EventElapsedTime", "DeviceSynchronize", "Memcpy")
"""Functions, in the order that `native.cpp` expects."""
READ, READ_WRITE = 1, 3
POPULATE_WRITE = 23
Block = TypeVar("Block", bytearray, torch.Tensor)
"""Values between guard bands, as bytes or as a tensor of bytes."""
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


class Runtime(NamedTuple):
    """A GPU's runtime library that is loaded in this process: events, synchronisation, copies.

    The functions' addresses are looked up before a kernel's file is read, so a kernel that replaces torch's events has
    no effect. CUDA's and ROCm's functions have the same arguments and, except for the prefix, the same names.
    """

    handle: Any
    prefix: str

    @staticmethod
    def loaded() -> "Runtime":
        """Return the runtime library that torch has loaded. Raises RuntimeError if there is none."""
        for line in Path("/proc/self/maps").read_text().splitlines():
            path = line.partition("/")[2]
            for name, prefix in LIBRARIES.items():
                if Path(path).name.startswith(f"{name}.so") or Path(path).name.startswith(f"{name}-"):
                    return Runtime(ctypes.CDLL(f"/{path}"), prefix)
        raise RuntimeError(f"torch has loaded no GPU runtime ({', '.join(LIBRARIES)}): is it a build for GPUs?")

    def addresses(self) -> list[int]:
        """Return the addresses of the functions. Raises AttributeError for one that the library lacks."""
        functions = (getattr(self.handle, self.prefix + name) for name in FUNCTIONS)
        return [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]

    def release_cache(self) -> None:
        """Reset lines that persist in L2 (NVIDIA's access policies), because a sweep would not evict them."""
        if (release := getattr(self.handle, f"{self.prefix}CtxResetPersistingL2Cache", None)) is not None:
            release()


class GpuInbox:
    """Inputs on a GPU, each in a block of its own between guard bands; read-only ones arrive encrypted.

    GPU memory is not write-protected; the evaluator compares the digest of inputs and guard bands afterwards.
    """

    def __init__(self, settings: dict[str, Any], native: NativeHarness) -> None:
        """`settings`: those of the worker, with the seed of the memory that a sweep reads."""
        from kernel_scientist.workers.untrusted import input_masking  # triton is imported before the fork

        self._device, self._native, self._runtime = settings["limits"]["device"], native, Runtime.loaded()
        self._crypt = input_masking.crypt
        self._sweep_memory = input_masking.SweepMemory(self._device, sweep_bytes(self._device), settings["sweep_seed"])
        self._sweep_memory.sweep(0)  # compiles it now, because later no program can be started
        native.bind_gpu(self._runtime.addresses())
        self._masked: dict[int, list[torch.Tensor]] = {}
        self._guarded: dict[int, list[torch.Tensor]] = {}

    def decode(self, slot: int, spec: protocol.Header, buffers: list[bytearray]) -> Any:
        """Return the inputs of a message, still encrypted."""
        masked, guarded = self._masked[slot], self._guarded[slot] = list[torch.Tensor](), list[torch.Tensor]()

        def place(form: protocol.Form, data: bytearray | protocol.Spot) -> torch.Tensor:
            assert isinstance(data, bytearray)
            block = torch.frombuffer(data, dtype=torch.int64).to(self._device, copy=True)
            raw = block.view(torch.uint8)
            guarded.extend(guarded_parts(raw, form.bytes, form.writable))
            if not form.writable:
                masked.append(block)
            return form.shaped(raw[GUARD_BYTES : GUARD_BYTES + form.bytes].view(form.dtype))

        return protocol.decode(spec, buffers, place)

    def unmask(self, slots: Sequence[int], keys: Sequence[int]) -> None:
        """Decrypt inputs, once. `keys`: two for each encrypted tensor, slot by slot."""
        pairs = list(zip(keys[::2], keys[1::2], strict=True))
        for slot in slots:
            blocks, self._masked[slot] = self._masked[slot], []
            self._crypt(blocks, pairs[: len(blocks)])
            pairs = pairs[len(blocks) :]
        self._native.gpu_synchronize()

    def sweep(self, key: int) -> int:
        """Flush the GPU's caches; return the checksum that proves it (`input_masking`). The device is idle then."""
        self._runtime.release_cache()
        checksum = self._sweep_memory.sweep(key)
        self._native.gpu_synchronize()
        return checksum

    def digest(self, slot: int) -> int:
        """Return the digest of the read-only inputs and of all guard bands."""
        copies = [bytearray(part.numel()) for part in self._guarded[slot]]
        for copy, part in zip(copies, self._guarded[slot], strict=True):
            self._native.read_gpu(outputs.address(copy), part.data_ptr(), len(copy))
        return digest(copies)


def sweep_bytes(device: str) -> int:
    """Return the bytes that a sweep reads: over twice the last-level cache (AMD reports none; MI300X: 256 MB)."""
    reported = int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0))
    return AMD_SWEEP_BYTES if torch.version.hip or not reported else max(2 * reported, LEAST_SWEEP_BYTES)


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


def guarded_parts(block: Block, size: int, writable: bool) -> list[Block]:
    """Return the parts of a block of `size` bytes of values that must stay as they are."""
    end = GUARD_BYTES + size
    if writable:
        return [block[:GUARD_BYTES], block[end : end + GUARD_BYTES]]
    return [block[: end + GUARD_BYTES]]
