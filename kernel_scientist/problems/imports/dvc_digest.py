"""The digest by which DVC names a folder's content: the `md5` of a folder in dvc.lock."""

import hashlib
import json
from pathlib import Path

IGNORED = ("__pycache__",)
"""Folders that .dvcignore names."""


def of_folder(folder: Path) -> str:
    """Return DVC's digest of a folder, such as `957d80cdc259af1d599d9fc73f4141e0.dir`."""
    files = sorted(f for f in folder.rglob("*") if f.is_file() and not set(IGNORED) & set(f.relative_to(folder).parts))
    listed = [{"md5": _md5(f.read_bytes()), "relpath": f.relative_to(folder).as_posix()} for f in files]
    listed.sort(key=lambda entry: entry["relpath"])
    return f"{_md5(json.dumps(listed, sort_keys=True).encode())}.dir"


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
