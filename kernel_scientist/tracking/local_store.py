"""An MLflow store in a folder: made whole or not at all, found again where it was moved or copied to, writable.

MLflow makes a database in some ten seconds of migrations. A second process that opens it meanwhile, or a kill, leaves
one that no process can use. It also records absolute addresses of artifacts: in a copied folder they lead to the
original.
"""

import contextlib
import itertools
import logging
import os
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from filelock import FileLock

from kernel_scientist.records import disk, environment
from kernel_scientist.records.errors import SetupError

SQLITE = "sqlite:///"
ARTIFACTS = "artifacts"
"""Folder of the artifacts, beside the database."""
ADDRESSES = {
    "experiments": ("artifact_location",),
    "runs": ("artifact_uri",),
    "logged_models": ("artifact_location",),
    "model_versions": ("source", "storage_location"),
    "trace_tags": ("value",),
}
"""MLflow's columns that hold addresses of artifacts, by table."""
progress = logging.getLogger("kernel_scientist.progress")


def database(uri: str) -> Path | None:
    """Return the database's file; None for a store that is not in a folder."""
    return Path(uri.removeprefix(SQLITE)) if uri.startswith(SQLITE) else None


def is_own(uri: str) -> bool:
    """Whether a store is in this project's folder, so that nobody else's campaigns are in it."""
    file = database(uri)
    return file is not None and file.resolve().is_relative_to(environment.root())


def artifacts(file: Path) -> str:
    """Return the address of a database's artifacts."""
    return (file.parent.resolve() / ARTIFACTS).as_uri()


def prepare(uri: str) -> None:
    """Make a store in a folder if there is none; one that was moved or copied gets its new addresses.

    One process at a time does so; the others wait. Raises SetupError when the folder cannot be written to.
    """
    file = database(uri)
    if file is None or (file.exists() and not _moved(file)):
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock"):
            if not file.exists():
                _create(file)
            if moved := _moved(file):
                _rebase(file, moved)
    except OSError as error:
        raise SetupError(f"cannot create the MLflow store {file}: {error.strerror or error}") from error


def require_writable(uri: str) -> None:
    """Raise SetupError unless a store in a folder can be written to. Other stores are not looked at."""
    file = database(uri)
    if file is None:
        return
    try:
        for folder in (file.parent, file.parent / ARTIFACTS):
            disk.try_folder(folder)
        disk.try_database(file)
    except sqlite3.OperationalError as error:
        raise SetupError(f"cannot write to the MLflow store {file}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise SetupError(f"the MLflow store {file} cannot be used: {error}") from error
    except OSError as error:
        raise SetupError(f"cannot write to the MLflow store's folder {file.parent}: {error.strerror}") from error


def _create(file: Path) -> None:
    """Make the database under another name, then rename it: a kill leaves no half of one."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    for left in file.parent.glob(f"{file.name}.part*"):  # by a process that was killed: this one holds the lock
        left.unlink()
    part = file.with_name(f"{file.name}.part{os.getpid()}")
    store = SqlAlchemyStore(f"{SQLITE}{part}", artifacts(file))
    store.engine.dispose()
    part.replace(file)


def _moved(file: Path) -> dict[str, str]:
    """Return the new addresses of experiments by those from folders in which the database was before.

    An address whose folder exists while there is none of its name beside the database is left as it is: somebody keeps
    artifacts elsewhere.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT artifact_location FROM experiments").fetchall()
    except sqlite3.DatabaseError:  # not MLflow's, or damaged: MLflow says what is wrong
        return {}
    here, moved = artifacts(file), dict[str, str]()
    for (recorded,) in rows:
        found = re.fullmatch(rf"file://(/.*/{ARTIFACTS}/([^/]+))", recorded or "")
        if found and recorded != (now := f"{here}/{found[2]}"):
            before, after = Path(unquote(found[1])), file.parent / ARTIFACTS / unquote(found[2])
            if after.exists() or not before.exists():
                moved[recorded] = now
    return moved


def _rebase(file: Path, moved: Mapping[str, str]) -> None:
    """Replace addresses, and those of what lies below them."""
    progress.warning("the MLflow store was in another folder before; now its artifacts are in %s", artifacts(file))
    with contextlib.closing(sqlite3.connect(file, timeout=60)) as connection, connection:
        existing = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        places = [(table, column) for table in ADDRESSES if table in existing for column in ADDRESSES[table]]
        for (before, after), (table, column) in itertools.product(moved.items(), places):
            rest = len(before) + 1
            change = f"UPDATE {table} SET {column} = ? || substr({column}, ?)"
            within = f"{column} = ? OR substr({column}, 1, ?) = ?"
            connection.execute(f"{change} WHERE {within}", (after, rest, before, rest, f"{before}/"))
