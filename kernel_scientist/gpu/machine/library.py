"""The machine's native library: built once for this processor, loaded, and asked for its table of instructions.

Runs in workers: standard library and numpy only.
"""

import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

NATIVE = Path(__file__).parent / "native"
FLAGS = ("-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fPIC")


class BuildError(RuntimeError):
    """The library cannot be built here."""


def build(folder: Path) -> Path:
    """Return the library for this processor; build it below `folder` if it is not there. Raises BuildError.

    Objects are kept as well: after a change of one file only that file is compiled.
    """
    headers = b"\0".join(path.read_bytes() for path in sorted(NATIVE.glob("*.h")))
    common = headers + " ".join(FLAGS).encode() + _processor()
    folder.mkdir(parents=True, exist_ok=True)
    sources = {
        path: folder / f"{path.stem}-{_digest(common + path.read_bytes())}.o" for path in sorted(NATIVE.glob("*.cpp"))
    }
    made = folder / f"machine-{_digest(''.join(to.name for to in sources.values()).encode())}.so"
    if made.exists():
        return made
    with tempfile.TemporaryDirectory(dir=folder) as scratch, ThreadPoolExecutor(os.cpu_count()) as several:
        jobs = [several.submit(_kept, to, Path(scratch), "-c", path) for path, to in sources.items()]
        for job in jobs:
            job.result()
        _kept(made, Path(scratch), "-shared", "-pthread", *sources.values())
    return made


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]


def _kept(made: Path, scratch: Path, *arguments: Any) -> None:
    """Make a file with the compiler, if it is not there."""
    if not made.exists():
        _run((*arguments, "-o", scratch / made.name))
        (scratch / made.name).replace(made)


def _run(arguments: tuple[Any, ...]) -> None:
    try:
        done = subprocess.run(["g++", *FLAGS, *map(str, arguments)], capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"the machine that executes gfx942 code needs g++: {error}") from error
    if done.returncode:
        raise BuildError(f"g++ could not build the machine that executes gfx942 code: {done.stderr[-2000:]}")


def _processor() -> bytes:
    """Return what tells this processor from others: its model and features."""
    lines = Path("/proc/cpuinfo").read_bytes().split(b"\n\n")[0].splitlines()
    wanted = (b"model name", b"flags", b"Features", b"CPU part")
    return b"".join(line for line in lines if line.startswith(wanted))


class Library:
    """The functions of the native library, and the numbers of the rows of its table by mnemonic."""

    def __init__(self, path: Path) -> None:
        native = ctypes.CDLL(str(path))
        native.machine_row.restype = ctypes.c_char_p
        native.machine_load.restype = ctypes.c_void_p
        native.machine_load.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        native.machine_free.argtypes = (ctypes.c_void_p,)
        size, pointer = ctypes.c_size_t, ctypes.c_void_p
        native.machine_run.argtypes = (pointer, pointer, pointer, size, pointer, pointer, pointer, size, pointer)
        self.load, self.free, self.run = native.machine_load, native.machine_free, native.machine_run
        self.packed_bytes: int = native.machine_packed_bytes()
        self.order_bytes: int = native.machine_order_bytes()
        self.rows = {native.machine_row(n).decode(): n for n in range(native.machine_rows())}


@functools.cache
def loaded(path: Path) -> Library:
    """Return the library of a file."""
    return Library(path)
