"""A GPU's runtime library as native functions: events, synchronisation, copies. Worker's side.

They are looked up by address, in the library that torch has loaded, before a kernel's file is read; what the kernel
puts in the place of torch's own events later changes nothing. CUDA's and ROCm's functions have the same arguments and,
but for the prefix, the same names: what differs is a table. Imports only the standard library.
"""

import ctypes
from pathlib import Path
from typing import Any, NamedTuple

LIBRARIES = {"libcudart": "cuda", "libamdhip64": "hip"}
"""What the library's name begins with, and its functions' names."""
FUNCTIONS = ("EventCreate", "EventRecord", "EventElapsedTime", "DeviceSynchronize", "Memcpy")
"""In the order in which `native.cpp` takes them."""


class Runtime(NamedTuple):
    """A runtime library that is loaded in this process."""

    handle: Any
    prefix: str

    @staticmethod
    def loaded() -> "Runtime":
        """Return the one that torch has loaded. Raises RuntimeError where there is none."""
        for line in Path("/proc/self/maps").read_text().splitlines():
            path = line.partition("/")[2]
            for name, prefix in LIBRARIES.items():
                if Path(path).name.startswith(f"{name}.so") or Path(path).name.startswith(f"{name}-"):
                    return Runtime(ctypes.CDLL(f"/{path}"), prefix)
        raise RuntimeError(f"torch has loaded no GPU runtime ({', '.join(LIBRARIES)}): is it a build for GPUs?")

    def addresses(self) -> list[int]:
        """Return where the functions lie. Raises AttributeError for one that the library lacks."""
        functions = (getattr(self.handle, self.prefix + name) for name in FUNCTIONS)
        return [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]

    def release_cache(self) -> None:
        """Let go of what was made to persist in L2 (NVIDIA's access policies): a sweep would go around it."""
        if (release := getattr(self.handle, f"{self.prefix}CtxResetPersistingL2Cache", None)) is not None:
            release()
