"""Assembly of what was compiled for GPUs, kept by its digest so that a record need only name it."""

import os
import threading
from pathlib import Path

from kernel_scientist.records import environment
from kernel_scientist.records.kernel import digest


def put(text: str) -> str:
    """Keep a text; return its digest."""
    name = digest(text)
    path = _path(name)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        temporary.write_text(text)
        temporary.replace(path)
    return name


def get(name: str) -> str | None:
    """Return a text by its digest, or None when it is not there (any more)."""
    path = _path(name)
    return path.read_text() if path.exists() else None


def _path(name: str) -> Path:
    return environment.cache_folder() / "assembly" / f"{name}.s"
