"""DVC as a program, and the records (`.dvc` files) of what it imported.

An import's content comes from its source again: DVC itself never stores it in a remote. So a second record, the stored
copy, names the same content; `dvc push` and `dvc pull` then store it like any other data.
"""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any

import yaml

from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.yaml_text import read_mapping

COPIES = ".cache/imports"
"""Folder of the stored copies' files, in the project's folder; safe to delete."""
STORED = ".stored.dvc"
"""Ending of the record of a stored copy."""
NOTE = "# Copy of an import for `dvc push` and `dvc pull`. Written by `kernel-scientist`.\n"


def require() -> None:
    """Raise SetupError if DVC is not installed, or the project's folder is not a DVC repository."""
    if importlib.util.find_spec("dvc") is None:
        raise SetupError("DVC is not installed for this Python: install it with `pip install dvc`")
    if not (environment.root() / ".dvc").is_dir():
        raise SetupError(f"{environment.root()} is not a DVC repository: run `dvc init` there (it needs `git init`)")


def run(*arguments: str) -> None:
    """Run DVC in the project's folder. Raises SetupError with DVC's reason."""
    env = {**os.environ, "DVC_NO_ANALYTICS": "1", "GIT_TERMINAL_PROMPT": "0"}
    command = [sys.executable, "-m", "dvc", *arguments]
    done = subprocess.run(command, cwd=environment.root(), env=env, capture_output=True, text=True)
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        reason = re.split(r"Having any troubles", said.rpartition("ERROR: ")[2])[0].strip()
        raise SetupError(f"`dvc {arguments[0]}` failed: {reason}")


def record(content: Path) -> Path:
    """Return the record of an imported file or folder."""
    return content.with_name(f"{content.name}.dvc")


def licence(content: Path) -> Path:
    """Return the licence file beside an imported file or folder."""
    return content.with_name(f"{content.name}.LICENSE")


def stored(content: Path) -> Path:
    """Return the record of an import's stored copy."""
    return content.with_name(f"{content.name}{STORED}")


def outputs(records: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the outputs that records name: content's digest, size and name."""
    return [output for one in records if one.is_file() for output in read_mapping(one).get("outs", [])]


def store(content: Path) -> None:
    """Write the record of an import's stored copy: its content and licence, under other paths."""
    root = environment.root()
    folder = content.parent.relative_to(root)
    copies = [
        {**output, "path": f"{COPIES}/{(folder / str(output['path'])).as_posix()}"}
        for output in outputs([record(content), record(licence(content))])
    ]
    fields = {"wdir": os.path.relpath(root, content.parent), "outs": copies}
    stored(content).write_text(NOTE + yaml.safe_dump(fields, sort_keys=False))
    run("checkout", "--quiet", "--force", str(stored(content).relative_to(root)))


@contextmanager
def undone_on_failure(content: Path) -> Generator[None]:
    """Remove an import's files and records, and what was added beside them, if the block does not end."""
    ignore, made = content.parent / ".gitignore", content.parent
    before = ignore.read_text() if ignore.is_file() else None
    while not made.parent.exists():
        made = made.parent
    is_new = not made.exists()
    try:
        content.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        beside = licence(content)
        for path in (content, record(content), beside, record(beside), stored(content)):
            _remove(path)
        if before is not None:
            ignore.write_text(before)
        else:
            ignore.unlink(missing_ok=True)
        if is_new:
            _remove(made)
        raise


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
