"""Builds the machine's native library, once for this compiler and processor."""

import hashlib
import logging
import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from filelock import FileLock

from kernel_scientist.compilers import gxx
from kernel_scientist.records.errors import SetupError

progress = logging.getLogger("kernel_scientist.progress")
NATIVE = Path(__file__).parent / "native"
FLAGS = ("-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fPIC")


def build(folder: Path) -> Path:
    """Return the library; build it below `folder` if it is not there. Raises SetupError if it cannot be built.

    Objects are kept as well: after a change of one file only that file is compiled.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):  # another process that needs it waits for this one's
        return _built(folder)


def _built(folder: Path) -> Path:
    headers = b"\0".join(path.read_bytes() for path in sorted(NATIVE.glob("*.h")))
    common = headers + "\0".join((*FLAGS, gxx.version(), gxx.processor())).encode()
    sources = {
        path: folder / f"{path.stem}-{_digest(common + path.read_bytes())}.o" for path in sorted(NATIVE.glob("*.cpp"))
    }
    made = folder / f"machine-{_digest(''.join(to.name for to in sources.values()).encode())}.so"
    if made.exists():
        return made
    if not all(to.exists() for to in sources.values()):
        progress.info("building the machine that executes gfx942 code, once: a minute or two")
    with tempfile.TemporaryDirectory(dir=folder) as scratch, ThreadPoolExecutor(os.cpu_count()) as several:
        jobs = [several.submit(_kept, to, Path(scratch), "-c", path) for path, to in sources.items()]
        for job in jobs:
            job.result()
        _kept(made, Path(scratch), "-shared", "-pthread", *sources.values())
    return made


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]


def _kept(made: Path, scratch: Path, *arguments: str | Path) -> None:
    """Make a file with the compiler, if it is not there."""
    if made.exists():
        return
    program = [gxx.find(), *FLAGS, *map(str, arguments), "-o", str(scratch / made.name)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"g++ could not build the machine that executes gfx942 code: {done.stderr[-2000:]}")
    (scratch / made.name).replace(made)
