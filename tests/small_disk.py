"""A command whose folder is a small disk of its own."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


def on_a_disk_of(size: str, folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments in a mount namespace where a folder, by default the cache, is so large a disk."""
    folder.mkdir(exist_ok=True)
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size={size} none {folder}"
    if subprocess.run([*alone, mount], capture_output=True).returncode:
        pytest.skip("this user can mount no file system")
    return subprocess.run(
        [*alone, f'{mount} && exec "$@"', "sh", sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {"KERNEL_SCIENTIST_CACHE": str(folder)})},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def fill(file: Path) -> None:
    """Write a file until its disk is full."""
    with file.open("wb", buffering=0) as out, contextlib.suppress(OSError):
        while True:
            out.write(bytes(512))
