"""Where others' problems and kernels come from: a revision of a git repository, or a folder or file outside git."""

import functools
import os
import posixpath
import re
import subprocess
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kernel_scientist.records.errors import SetupError

WAIT_S = 600
"""Longest time that git may take to read a repository."""
LICENCES = re.compile(r"(licen[cs]e|copying|unlicense)", re.IGNORECASE)
"""How the name of a licence file begins."""
ADDRESS = re.compile(r"\w[\w+.-]*://|[\w.-]+@[\w.-]+:|.*\.git/?$")
"""Pattern of an address of a git repository."""
LOCAL = "file://"
FOLDERS_ABOVE = 3
"""How many folders above a path outside git are searched for a licence."""


@dataclass(frozen=True)
class Source:
    """Files of others. Paths have forward slashes."""

    address: str
    """Address of the git repository, or the path outside git."""
    path: str
    """What the user named: relative to the repository's root, or absolute outside git."""
    listed: tuple[str, ...]
    """All files of the revision; outside git those at and below `path`."""
    read: Callable[[str], str]
    """Returns a file's text. Raises SetupError if it cannot be read."""
    import_options: tuple[str, ...] | None = None
    """Options of `dvc import` that pin the revision; None outside git."""

    @property
    def is_git(self) -> bool:
        """Whether this is a revision of a git repository."""
        return self.import_options is not None

    def is_file(self, path: str) -> bool:
        """Whether there is a file at a path."""
        return path in self.listed

    def files(self, folder: str) -> list[str]:
        """Return the paths of all files in a folder and in the folders below it."""
        return [f for f in self.listed if folder == "." or f.startswith(f"{folder}/")]

    def importing(self, path: str, target: str) -> list[str]:
        """Return the arguments of DVC that import a path as `target`, in place of an earlier one."""
        if self.import_options is None:
            return ["import-url", "--quiet", "--force", path, target]
        # from a plain path DVC would take the working tree, with what is not committed
        address = f"{LOCAL}{self.address}" if Path(self.address).exists() else self.address
        return ["import", "--quiet", "--force", address, path, "--out", target, *self.import_options]

    def licence(self, path: str) -> str | None:
        """Return the licence file nearest to a path: in the folder itself, or in one above."""
        for folder in _with_those_above(path)[: None if self.is_git else 1 + FOLDERS_ABOVE]:
            if self.is_git:
                beside = [f for f in self.listed if (posixpath.dirname(f) or ".") == folder]
            else:
                beside = [f.as_posix() for f in Path(folder).glob("*") if f.is_file()]
            if found := sorted(f for f in beside if LICENCES.match(posixpath.basename(f))):
                return found[0]
        return None


def _with_those_above(path: str) -> list[str]:
    """Return a path and the folders that contain it, the nearest first."""
    return [path, *map(str, PurePosixPath(path).parents)]


@contextmanager
def opened(source: str, path: str | None = None, rev: str | None = None) -> Generator[Source]:
    """Open what a user names: a git address or a local path, a path below it, a revision.

    Raises SetupError when the address, the revision or the path does not exist.
    """
    local = Path(source).expanduser()
    if local.exists() and (repository := _repository(local)) is None:
        yield _plain(local, path, rev)
        return
    if local.exists():
        repository = _repository(local)
        inside = local.resolve().relative_to(repository or local.resolve()).as_posix()
        source = str(repository)
    elif ADDRESS.match(source):
        inside = "."
    else:
        raise SetupError(f"{source!r} is neither a path that exists nor the address of a git repository")
    named = posixpath.normpath(posixpath.join(inside, path or "."))
    if named.startswith(("..", "/")):
        raise SetupError(f"path {path!r} leads out of the repository {source}")
    with tempfile.TemporaryDirectory(prefix="import-") as folder:
        yield _revision(source, named, rev, Path(folder) / "clone.git")


def _plain(local: Path, path: str | None, rev: str | None) -> Source:
    chosen = (local / (path or ".")).resolve()
    if rev is not None:
        raise SetupError(f"{local} is not in a git repository: it has no revision {rev!r}")
    if not chosen.exists():
        raise SetupError(f"there is no {path!r} in {local}")
    within = [Path(at) / name for at, _, names in os.walk(chosen) for name in names]
    listed = [chosen.as_posix()] if chosen.is_file() else sorted(f.as_posix() for f in within)
    return Source(chosen.as_posix(), chosen.as_posix(), tuple(listed), _text)


def _text(path: str) -> str:
    try:
        return _decoded(Path(path).read_bytes(), path)
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}") from error


def _decoded(content: bytes, path: str) -> str:
    """Return the text of a file's content, which may be empty. Raises SetupError if it is no text."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SetupError(f"cannot read {path}: it is not text (byte {error.start + 1} is not UTF-8)") from error
    if "\0" in text:
        raise SetupError(f"cannot read {path}: it is not text (it has zero bytes)")
    return text.replace("\r\n", "\n")


def _revision(address: str, path: str, rev: str | None, clone: Path) -> Source:
    """Return a revision of a git repository. Raises SetupError if neither git nor DVC has something at a path."""
    commit = _cloned(address, rev, clone)
    listed = _git("-C", str(clone), "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit).split("\0")[:-1]
    pinned = commit if rev and commit.startswith(rev) else rev
    options = ("--rev", pinned) if pinned else ()
    read = functools.partial(_show, clone, commit)
    found = Source(address, path, tuple(listed), read, options)
    if not (found.is_file(path) or found.files(path) or any(f"{f}.dvc" in listed for f in _with_those_above(path))):
        raise SetupError(
            f"there is no committed {path!r} in {address} at {rev or 'its default branch'} ({commit[:12]})"
        )
    return found


def _show(clone: Path, commit: str, path: str) -> str:
    return _decoded(_output("-C", str(clone), "show", f"{commit}:{path}"), path)


def _repository(local: Path) -> Path | None:
    """Return the root of the git repository that holds a path; the path itself if it is a bare one."""
    here = local.resolve()
    if (here / "HEAD").is_file() and (here / "objects").is_dir():
        return here
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)


def _cloned(address: str, rev: str | None, clone: Path) -> str:
    """Clone a repository without its files' contents; return the commit of `rev`, by default of its default branch."""
    if address.startswith("-") or (rev or "").startswith("-"):
        raise SetupError("neither an address nor a revision begins with a dash")
    try:
        _git("clone", "--quiet", "--bare", "--filter=blob:none", "--", address, str(clone))
    except SetupError as error:
        raise SetupError(f"cannot read the git repository {address}: {error}") from error
    try:
        return _git("-C", str(clone), "rev-parse", "--verify", f"{rev or 'HEAD'}^{{commit}}").strip()
    except SetupError as error:
        what = f"no revision {rev!r}" if rev else "no commit"
        raise SetupError(f"the git repository {address} has {what}") from error


def _git(*arguments: str) -> str:
    """Run git; return the text that it prints. Raises SetupError with git's reason."""
    return _output(*arguments).decode(errors="replace")


def _output(*arguments: str) -> bytes:
    """Run git; return what it prints. Raises SetupError with git's reason."""
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}  # no question about a password: it would wait
    try:
        done = subprocess.run(["git", *arguments], env=env, capture_output=True, timeout=WAIT_S)
    except FileNotFoundError as error:
        raise SetupError("git is not on PATH; install it") from error
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"git did not answer within {WAIT_S} s") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        reason = next((line for line in said if line.startswith(("fatal:", "error:"))), said[-1] if said else "")
        raise SetupError(reason.partition(": ")[2] or reason or "git failed")
    return done.stdout
