"""NVRTC's process: called with LIBRARY OPTION... kernel.cu, it writes `kernel.cubin` and prints the compiler's
messages.

A script that imports nothing of this project. Source: NVRTC's documentation (docs.nvidia.com/cuda/nvrtc).
"""

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path


def main() -> None:
    """Compile the file."""
    library, *options, name = sys.argv[1:]
    nvrtc = ctypes.CDLL(library)
    program = ctypes.c_void_p()
    source = Path(name).read_bytes()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), 0, None, None))
    given = [option.encode() for option in (*options, "-std=c++17")]
    status = nvrtc.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
    print(_text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace").strip("\0"))
    _check(status)
    Path("kernel.cubin").write_bytes(_text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program))


def _text(size_of: Callable[..., int], get: Callable[..., int], program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _check(size_of(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(get(program, buffer))
    return buffer.raw


def _check(status: int) -> None:
    if status != 0:
        sys.exit(f"NVRTC ends with status {status}")


if __name__ == "__main__":
    main()
