"""Store of GPU assembly under its digest, so that records only need the digest."""

import os
import threading
from pathlib import Path

from kernel_scientist.records import environment
from kernel_scientist.records.kernel import digest


def put(text: str) -> str:
    """Store assembly; return its digest."""
    name = digest(text)
    path = _path(name)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        temporary.write_text(text)
        temporary.replace(path)
    return name


def get(name: str) -> str | None:
    """Return assembly by its digest; None if it is not stored."""
    path = _path(name)
    return path.read_text() if path.exists() else None


def _path(name: str) -> Path:
    return environment.cache_folder() / "assembly" / f"{name}.s"
