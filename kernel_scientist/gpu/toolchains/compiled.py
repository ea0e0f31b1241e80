"""Results of compiling device code, and their cache."""

import hashlib
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kernel_scientist.records import environment
from kernel_scientist.records.base import Record
from kernel_scientist.sandbox import confine

MEMORY_BYTES = 8 << 30


class Compiled(Record):
    """The result of a compilation."""

    ok: bool
    compiler: str
    log: str = ""
    """The compiler's messages with source lines."""
    assembly: str = ""
    """Text for `assembly.read`."""
    missing: str = ""
    """What this machine lacks to compile it; this is no fault of the kernel."""
    seconds: float = 0.0
    cached: bool = False


def kept(kind: str, key: Sequence[str], make: Callable[[Path], Compiled]) -> Compiled:
    """Return the cached result of a key, or compile with `make` in an empty folder and cache the result if it is ok."""
    folder = environment.cache_folder() / kind
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{hashlib.sha256(repr(tuple(key)).encode()).hexdigest()}.json"
    if file.exists():
        return Compiled.model_validate_json(file.read_text()).model_copy(update={"cached": True})
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as scratch:
        compiled = make(Path(scratch))
    if compiled.ok:
        environment.keep(file, compiled.model_dump_json())
    return compiled


def run(command: list[str], scratch: Path, timeout_s: float) -> tuple[bool, str, float]:
    """Run a confined compiler; return whether it succeeded, its messages, and its seconds."""
    start = time.monotonic()
    status, log = confine.run(command, scratch, timeout_s, MEMORY_BYTES)
    if status is None:
        log = f"the compiler took longer than {timeout_s:g} s and was stopped\n{log}"
    return status == 0, log, round(time.monotonic() - start, 3)
