"""Where others' problems and kernels come from: a revision of a git repository, or a folder or file outside git."""

import os
import posixpath
import re
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

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
class Source(ABC):
    """Files of others. Paths have forward slashes."""

    address: str
    """Address of the git repository, or the path outside git."""
    path: str
    """What the user named: relative to the repository's root, or absolute outside git."""

    @abstractmethod
    def is_file(self, path: str) -> bool:
        """Whether there is a file at a path."""

    @abstractmethod
    def files(self, folder: str) -> list[str]:
        """Return the paths of all files in a folder and in the folders below it."""

    @abstractmethod
    def read(self, path: str) -> str:
        """Return a file's text."""

    @abstractmethod
    def importing(self, path: str, target: str) -> list[str]:
        """Return the arguments of DVC that import a path as `target`, in place of an earlier one."""

    @abstractmethod
    def above(self, path: str) -> Iterator[str]:
        """Yield the folders that contain a path, the nearest first."""

    @abstractmethod
    def beside(self, folder: str) -> list[str]:
        """Return the paths of the files directly in a folder."""

    def licence(self, path: str) -> str | None:
        """Return the licence file nearest to a path: in the folder itself, or in one above."""
        for folder in (path, *self.above(path)):
            if found := sorted(f for f in self.beside(folder) if LICENCES.match(posixpath.basename(f))):
                return found[0]
        return None


@dataclass(frozen=True)
class GitSource(Source):
    """A revision of a git repository."""

    rev: str | None
    """The branch, tag or commit that the user named."""
    revision: str
    """Its commit."""
    clone: Path

    @cached_property
    def _listed(self) -> list[str]:
        listed = _git("-C", str(self.clone), "ls-tree", "-r", "-z", "--name-only", "--full-tree", self.revision)
        return [name for name in listed.split("\0") if name]

    def is_file(self, path: str) -> bool:
        """Whether the revision has a file at a path."""
        return path in self._listed

    def files(self, folder: str) -> list[str]:
        """Return the paths of all files in a folder of the revision."""
        return [f for f in self._listed if folder == "." or f.startswith(f"{folder}/")]

    def beside(self, folder: str) -> list[str]:
        """Return the paths of the files directly in a folder of the revision."""
        return [f for f in self._listed if (posixpath.dirname(f) or ".") == folder]

    def read(self, path: str) -> str:
        """Return a file's text in the revision."""
        return _git("-C", str(self.clone), "show", f"{self.revision}:{path}")

    def importing(self, path: str, target: str) -> list[str]:
        """Return the arguments of `dvc import`."""
        named = self.revision if self.rev and self.revision.startswith(self.rev) else self.rev
        pinned = ["--rev", named] if named else []
        # from a plain path DVC would take the working tree, with what is not committed
        address = f"{LOCAL}{self.address}" if Path(self.address).exists() else self.address
        return ["import", "--quiet", "--force", address, path, "--out", target, *pinned]

    def above(self, path: str) -> Iterator[str]:
        """Yield the folders that contain a path, up to the repository's root."""
        while path not in ("", "."):
            path = posixpath.dirname(path) or "."
            yield path

    def require(self, path: str) -> None:
        """Raise SetupError if the revision has nothing at a path, neither in git nor in DVC."""
        tracked = [f"{one}.dvc" for one in (path, *self.above(path))]
        if not (self.is_file(path) or self.files(path) or any(self.is_file(record) for record in tracked)):
            raise SetupError(
                f"there is no committed {path!r} in {self.address} at {self.rev or 'its default branch'} "
                f"({self.revision[:12]})"
            )


@dataclass(frozen=True)
class PlainSource(Source):
    """A folder or file outside git."""

    def is_file(self, path: str) -> bool:
        """Whether there is a file at a path."""
        return Path(path).is_file()

    def files(self, folder: str) -> list[str]:
        """Return the paths of all files in a folder."""
        inside = [Path(at) / name for at, _, names in os.walk(folder) for name in names]
        return sorted(f.as_posix() for f in inside)

    def beside(self, folder: str) -> list[str]:
        """Return the paths of the files directly in a folder."""
        return [f.as_posix() for f in Path(folder).iterdir() if f.is_file()] if Path(folder).is_dir() else []

    def read(self, path: str) -> str:
        """Return a file's text. Raises SetupError if it cannot be read."""
        try:
            return Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error

    def importing(self, path: str, target: str) -> list[str]:
        """Return the arguments of `dvc import-url`."""
        return ["import-url", "--quiet", "--force", path, target]

    def above(self, path: str) -> Iterator[str]:
        """Yield the nearest folders that contain a path."""
        yield from (folder.as_posix() for folder in Path(path).parents[:FOLDERS_ABOVE])


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
        clone = Path(folder) / "clone.git"
        found = GitSource(source, named, rev, _cloned(source, rev, clone), clone)
        found.require(named)
        yield found


def _plain(local: Path, path: str | None, rev: str | None) -> PlainSource:
    chosen = (local / (path or ".")).resolve()
    if rev is not None:
        raise SetupError(f"{local} is not in a git repository: it has no revision {rev!r}")
    if not chosen.exists():
        raise SetupError(f"there is no {path!r} in {local}")
    return PlainSource(chosen.as_posix(), chosen.as_posix())


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
    return done.stdout.decode(errors="replace")
