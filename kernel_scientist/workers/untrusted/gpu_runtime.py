"""A GPU's runtime library as native functions: events, synchronisation, copies. Worker's side.

Their addresses are looked up in torch's loaded library before a kernel's file is read, so a kernel that replaces
torch's events has no effect. CUDA's and ROCm's functions have the same arguments and,
except for the prefix, the same names. Imports only the standard library.
"""

import ctypes
from pathlib import Path
from typing import Any, NamedTuple

LIBRARIES = {"libcudart": "cuda", "libamdhip64": "hip"}
"""Prefixes of the library's name and of its functions."""
FUNCTIONS = ("EventCreate", "EventRecord", "EventElapsedTime", "DeviceSynchronize", "Memcpy")
"""Functions, in the order that `native.cpp` expects."""


class Runtime(NamedTuple):
    """A runtime library that is loaded in this process."""

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
