"""A GPU's runtime library in this process: events, copies, launches, and memory that two processes share.

CUDA's and ROCm's functions take the same arguments and, except for the prefix, have the same names. CUDA keeps launches
and shared memory in its driver's library; ROCm has one library for all. Imports only the standard library and torch.
"""

import ctypes
import os
import struct
from pathlib import Path
from typing import Any, NamedTuple

import torch

from kernel_scientist.records.errors import InfrastructureError

LIBRARIES = {"libcudart": "cuda", "libamdhip64": "hip"}
"""Prefixes of the library's name and of its functions."""
FUNCTIONS = ("EventCreate", "EventRecord", "EventElapsedTime", "DeviceSynchronize", "Memcpy", "MemcpyAsync")
"""Functions of a row of calls, in the order that `shim/` expects; launch and release of the cache follow."""
LAUNCHES = {"cu": "cuLaunchKernel", "hip": "hipModuleLaunchKernel"}
DLPACK = {"cuda": 2, "hip": 10}
"""Numbers of the devices in DLPack; that of a CPU is 1."""
ON_DEVICE, PINNED, AS_DESCRIPTOR, READ_WRITE = 1, 1, 1, 3
"""Values of CUmemLocationType, CUmemAllocationType, CUmemAllocationHandleType and CUmemAccess_flags, and of ROCm's."""
BY_VALUE = 70_100_000
"""First version of ROCm's runtime that takes a descriptor by its value, as CUDA does. Older ones take its address."""


class RuntimeLibraryError(InfrastructureError):
    """A function of the GPU's runtime library reports an error."""


class Runtime(NamedTuple):
    """The libraries. Addresses are looked up before a kernel's file is read: replacing torch's events does nothing."""

    handle: Any
    prefix: str
    driver: Any
    driver_prefix: str

    @staticmethod
    def loaded() -> "Runtime":
        """Return the libraries that torch has loaded. Raises RuntimeLibraryError if there are none."""
        for line in Path("/proc/self/maps").read_text().splitlines():
            path = line.partition("/")[2]
            for name, prefix in LIBRARIES.items():
                if Path(path).name.startswith(f"{name}.so") or Path(path).name.startswith(f"{name}-"):
                    handle = ctypes.CDLL(f"/{path}")
                    if prefix == "cuda":
                        return Runtime(handle, prefix, ctypes.CDLL("libcuda.so.1"), "cu")
                    return Runtime(handle, prefix, handle, prefix)
        raise RuntimeLibraryError(f"torch has loaded no GPU runtime ({', '.join(LIBRARIES)}): is it a build for GPUs?")

    def addresses(self) -> list[int]:
        """Return the addresses of the functions that `shim/` binds. Raises AttributeError for a missing one.

        The last one, which makes lines in the cache evictable again, is 0 where there is none.
        """
        functions = [getattr(self.handle, self.prefix + name) for name in FUNCTIONS]
        functions.append(getattr(self.driver, LAUNCHES.get(self.driver_prefix, f"{self.driver_prefix}LaunchKernel")))
        functions.append(getattr(self.handle, f"{self.prefix}CtxResetPersistingL2Cache", None))
        return [ctypes.cast(function, ctypes.c_void_p).value or 0 if function else 0 for function in functions]

    def synchronize(self) -> None:
        """Wait until this process's work on the device has ended. Raises RuntimeLibraryError."""
        if error := getattr(self.handle, f"{self.prefix}DeviceSynchronize")():
            raise RuntimeLibraryError(f"the GPU's runtime reports error {error}")

    def release_cache(self) -> None:
        """Make lines that persist in L2 (NVIDIA's access policies) evictable, because a sweep would not evict them."""
        if (release := getattr(self.handle, f"{self.prefix}CtxResetPersistingL2Cache", None)) is not None:
            release()

    def memory(self, name: str, *arguments: Any) -> None:
        """Call a function of memory that can be shared. Raises RuntimeLibraryError with the function's error."""
        function = f"{self.driver_prefix}Mem{name}"
        if error := getattr(self.driver, function)(*arguments):
            raise RuntimeLibraryError(f"{function} reports error {error}")


class DeviceMapping:
    """Memory of the GPU that two processes map: one creates it, the other gets a descriptor and imports it."""

    def __init__(self, runtime: Runtime, size: int, descriptor: int | None = None) -> None:
        """Create memory of `size` bytes or more, or map that behind a descriptor. Raises RuntimeLibraryError."""
        runtime.synchronize()  # in a new thread this selects the process's context
        self._runtime, self._handle, address = runtime, ctypes.c_uint64(), ctypes.c_uint64()
        where = struct.pack("<iiii16x", PINNED, AS_DESCRIPTOR, ON_DEVICE, 0)
        unit = ctypes.c_size_t()
        runtime.memory("GetAllocationGranularity", ctypes.byref(unit), where, 0)
        self.size = -(-size // unit.value) * unit.value
        whole = ctypes.c_size_t(self.size)
        if descriptor is None:
            runtime.memory("Create", ctypes.byref(self._handle), whole, where, ctypes.c_uint64())
            self.descriptor = self._exported()
        else:
            self.descriptor = descriptor
            runtime.memory("ImportFromShareableHandle", ctypes.byref(self._handle), self._as_handle(), AS_DESCRIPTOR)
        nothing = (ctypes.c_size_t(), ctypes.c_uint64(), ctypes.c_uint64())
        runtime.memory("AddressReserve", ctypes.byref(address), whole, *nothing)
        self.address = address.value
        runtime.memory("Map", address, whole, ctypes.c_size_t(), self._handle, ctypes.c_uint64())
        access = struct.pack("<iii", ON_DEVICE, 0, READ_WRITE)
        runtime.memory("SetAccess", address, whole, access, ctypes.c_size_t(1))

    def _exported(self) -> int:
        found = ctypes.c_int(-1)
        handed = (ctypes.byref(found), self._handle, AS_DESCRIPTOR, ctypes.c_uint64())
        self._runtime.memory("ExportToShareableHandle", *handed)
        return found.value

    def _as_handle(self) -> Any:
        if self._runtime.driver_prefix == "hip":
            version = ctypes.c_int()
            self._runtime.handle.hipRuntimeGetVersion(ctypes.byref(version))
            if version.value < BY_VALUE:
                return ctypes.byref(ctypes.c_int(self.descriptor))
        return ctypes.c_void_p(self.descriptor)

    def close(self) -> None:
        """Unmap and free the memory. Tensors over it must not be used any more."""
        address, size = ctypes.c_uint64(self.address), ctypes.c_size_t(self.size)
        self._runtime.memory("Unmap", address, size)
        self._runtime.memory("AddressFree", address, size)
        self._runtime.memory("Release", self._handle)
        os.close(self.descriptor)

    def bytes(self, offset: int, size: int) -> torch.Tensor:
        """Return some of the memory as a tensor of bytes with a storage of its own. It does not own the memory."""
        return over(self.address + offset, size, DLPACK.get(self._runtime.prefix, 1))


class _Tensor(ctypes.Structure):
    """DLManagedTensor of one dimension (DLPack 0.8): a tensor's description that libraries hand each other."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_UNSIGNED = 1
_described: list[_Tensor] = []
"""torch reads a description until its tensor dies, and no deleter says when that is."""


def over(address: int, size: int, device: int) -> torch.Tensor:
    """Return a tensor of `size` bytes at an address of DLPack's device. It does not own the memory."""
    shape = (ctypes.c_int64 * 1)(size)
    one = _Tensor(address, (device, 0), 1, _UNSIGNED, 8, 1, ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)))
    _described.append(one)
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return torch.from_dlpack(capsule(ctypes.addressof(one), b"dltensor", None))
