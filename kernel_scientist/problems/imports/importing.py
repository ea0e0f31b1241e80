"""Imports of others' problems and kernels by DVC: content hashed, revision pinned, licence beside them."""

import posixpath
import re
from pathlib import Path
from typing import Any

import yaml

from kernel_scientist.problems.imports import dvc_program, provenance, source
from kernel_scientist.problems.imports.provenance import Provenance
from kernel_scientist.problems.imports.source import Source
from kernel_scientist.problems.kernelbench import is_named_so
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.yaml_text import parse_yaml

NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)*")
TASK = "task.yml"


def problem(named: str, path: str | None = None, rev: str | None = None, name: str | None = None) -> Provenance:
    """Import a problem or a set of problems as `problems/NAME`.

    `named`: git address or local path; `path`: below it; `rev`: branch, tag or commit. If the task.yml of a problem
    names files above its folder, the folder that holds them all is imported. Raises SetupError; then nothing changed.
    """
    dvc_program.require()
    with source.opened(named, path, rev) as found:
        whole = extent(found, found.path)
        chosen = name or _named(found, whole)
        if found.is_file(whole):
            chosen = chosen.removesuffix(".py") + ".py"
            _require_kernelbench_name(chosen)
        require_name(chosen)
        return bring(found, whole, environment.root() / "problems" / chosen)


def _named(found: Source, whole: str) -> str:
    """Return the default name of an import: the last part of its path, for a file the last two."""
    if found.is_file(whole):
        return "/".join(whole.split("/")[-2:])
    return posixpath.basename(whole if whole != "." else found.address.rstrip("/")).removesuffix(".git")


def extent(found: Source, path: str) -> str:
    """Return what to import so that the problem at a path has all its files.

    Raises SetupError if there is no problem: neither a task.yml nor a file of KernelBench's format.
    """
    if posixpath.basename(path) == TASK and found.is_file(path):
        path = posixpath.dirname(path) or "."
    if found.is_file(path):
        if is_kernelbench(found, path):
            return path
    elif found.is_file(task := posixpath.normpath(posixpath.join(path, TASK))):
        return _with_shared_files(found, path, task)
    else:
        inside = found.files(path)
        folders = [f for f in inside if posixpath.basename(f) == TASK]
        if folders or any(is_kernelbench(found, f) for f in inside if re.match(r"\d+_", posixpath.basename(f))):
            return path
        if found.is_git and not inside:
            return path  # DVC's own data in the source: only DVC can look into it
    raise SetupError(
        f"there is no problem in {path!r} of {found.address}: neither a {TASK} nor a KernelBench file (name a folder "
        "below it with --path)"
    )


def is_kernelbench(found: Source, path: str) -> bool:
    """Whether a file defines what KernelBench's problems do: `Model` and `get_inputs`."""
    if not path.endswith(".py"):
        return False
    text = found.read(path)
    return bool(re.search(r"^class Model\b", text, re.M) and re.search(r"^def get_inputs\b", text, re.M))


def _with_shared_files(found: Source, path: str, task: str) -> str:
    """Return the folder that holds a problem and all files that its task.yml names."""
    try:
        content: Any = parse_yaml(found.read(task))
        files = content.get("files") or []
        named = [str(one["source"]) for one in files if isinstance(one, dict) and "source" in one]
    except (yaml.YAMLError, AttributeError, TypeError) as error:
        raise SetupError(f"{task} of {found.address} is not a task file: {' '.join(str(error).split())}") from error
    climbs = max((posixpath.normpath(one).split("/").count("..") for one in named), default=0)
    for _ in range(climbs):
        if path in ("", ".", "/"):
            raise SetupError(f"{task} of {found.address} names files above the source: {', '.join(named)}")
        path = posixpath.dirname(path) or "."
    return path


def bring(found: Source, path: str, target: Path) -> Provenance:
    """Import a path with its licence as `target`. Raises SetupError; then nothing changed."""
    _require_free(target)
    with dvc_program.undone_on_failure(target):
        dvc_program.run(*found.importing(path, _shown(target)))
        _bring_licence(found, path, target)
        brought = provenance.of(target)
        if brought is None:
            raise SetupError(f"DVC wrote no record of {_shown(target)}")
        if brought.is_git:
            dvc_program.store(target)
        return brought


def update_problem(name: str, rev: str | None = None) -> Provenance:
    """Bring an imported problem or set to the newest revision, or to `rev`. Raises SetupError for an unknown name."""
    folder = environment.root() / "problems"
    known = {one.content.relative_to(folder).as_posix(): one.content for one in provenance.every(folder)}
    content = known.get(name) or known.get(f"{name}.py")
    if content is None:
        raise SetupError(f"no problem {name!r} is imported; imported: {', '.join(known) or 'none'}")
    return update(content, rev)


def update(content: Path, rev: str | None = None) -> Provenance:
    """Bring an import to the newest revision of its branch, or to `rev`; renew its licence and its stored copy.

    Raises SetupError when it is no import, or its source does not have the revision or the path any more.
    """
    dvc_program.require()
    before = provenance.of(content)
    if before is None or before.content != content:
        raise SetupError(f"{_shown(content)} is not an import of its own{_hint(before)}")
    wanted = rev or before.rev or None
    where = before.path if before.is_git else None
    with source.opened(before.address, where, wanted if before.is_git else rev) as found:
        pinned = ["--rev", rev] if rev else []
        record = dvc_program.record(content)
        if before.is_git and Path(before.address).exists():  # an earlier version recorded the plain path
            record.write_text(record.read_text().replace(f" {before.address}\n", f" file://{before.address}\n"))
        dvc_program.run("update", "--quiet", *pinned, _shown(record))
        if not _bring_licence(found, found.path, content):
            beside = dvc_program.licence(content)
            for old in (beside, dvc_program.record(beside)):
                old.unlink(missing_ok=True)
    after = provenance.of(content)
    assert after is not None
    if after.is_git:
        dvc_program.store(content)
    return after


def _bring_licence(found: Source, path: str, target: Path) -> bool:
    """Import the licence of a path beside `target`; return whether there is one."""
    text = found.licence(path)
    if text is not None:
        dvc_program.run(*found.importing(text, _shown(dvc_program.licence(target))))
    return text is not None


def _hint(before: Provenance | None) -> str:
    return f": it is a part of {_shown(before.content)}" if before else ""


def _require_free(target: Path) -> None:
    """Raise SetupError if a target exists or lies in an import."""
    beside = dvc_program.licence(target)
    for path in (target, dvc_program.record(target), beside, dvc_program.record(beside), dvc_program.stored(target)):
        if path.exists():
            raise SetupError(f"{_shown(path)} exists already: choose another --name, or update or remove it first")
    if around := provenance.of(target.parent):
        raise SetupError(f"{_shown(target)} would lie in the import {_shown(around.content)}: choose another --name")


def _require_kernelbench_name(name: str) -> None:
    """Raise SetupError if a KernelBench file would not be found by its name."""
    folder, _, file = name.rpartition("/")
    if not folder or not is_named_so(Path(file)):
        raise SetupError(f"{name!r}: a KernelBench file is named like level1/19_ReLU.py (--name)")


def require_name(name: str, folders: bool = True) -> None:
    """Raise SetupError if a name cannot be that of a file. `folders`: whether it may have folders."""
    if not NAME.fullmatch(name) or ("/" in name and not folders):
        between = ", and '/' between folders" if folders else ""
        raise SetupError(f"{name!r} is no name: use letters, digits, '.', '_', '-'{between} (--name)")


def _shown(path: Path) -> str:
    root = environment.root()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
