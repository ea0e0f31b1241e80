"""Where an imported problem or kernel came from, read from the `.dvc` file that DVC wrote."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_scientist.problems.imports import dvc_program
from kernel_scientist.records import environment
from kernel_scientist.records.problem_result import ImportOrigin
from kernel_scientist.records.yaml_text import read_mapping

MOST_WORDS = 80
"""Most characters of a licence's first line that are shown."""


@dataclass(frozen=True)
class Provenance:
    """The source of an imported file or folder."""

    content: Path
    """What was imported, in this project."""
    address: str
    """Address of the git repository, or the path outside git."""
    path: str
    """Path in the repository; empty outside git."""
    rev: str
    """The branch, tag or commit that was asked for; empty: the default branch, or outside git."""
    revision: str
    """The commit; outside git the digest of the content."""
    is_git: bool

    @property
    def is_here(self) -> bool:
        """Whether the content is in this work tree: a fresh clone has it after `dvc pull`."""
        return self.content.exists()

    @property
    def licence(self) -> str:
        """Return the licence's first line and its file."""
        file = dvc_program.licence(self.content)
        if not dvc_program.record(file).is_file():
            return "no licence file was found in the source"
        shown = file.relative_to(environment.root()).as_posix()
        if not file.is_file():
            return f"{shown} (after `dvc pull`)"
        lines = [line.strip() for line in file.read_text(errors="replace").splitlines() if line.strip(" \t#=-*")]
        return f"{lines[0][:MOST_WORDS] if lines else 'an empty file'} ({shown})"

    @property
    def is_stored(self) -> bool:
        """Whether `dvc push` stores this content: its stored copy is of this version."""
        if not self.is_git:
            return True
        records = (dvc_program.record(self.content), dvc_program.record(dvc_program.licence(self.content)))
        wanted = {str(output.get("md5")) for output in dvc_program.outputs(records)}
        return wanted == {str(output.get("md5")) for output in dvc_program.outputs([dvc_program.stored(self.content)])}

    def words(self) -> str:
        """Return address, path and revision as text."""
        where = f"{self.address} {self.path}" if self.is_git else self.address
        return f"{where} at {self.revision[:12]}{f' ({self.rev})' if self.rev not in ('', self.revision) else ''}"

    @property
    def origin(self) -> ImportOrigin:
        """Return address, path, revision and licence as a record."""
        return ImportOrigin(address=self.address, path=self.path, revision=self.revision, licence=self.licence)


def of(path: Path) -> Provenance | None:
    """Return the provenance of a file or folder that was imported, or lies in an imported folder; None for others."""
    root, below = environment.root(), Path(path)
    for content in (below, *below.parents):
        if content == root or not content.is_relative_to(root):
            return None
        if found := _read(content, below.relative_to(content).as_posix()):
            return found
    return None


def every(folder: Path) -> list[Provenance]:
    """Return the provenance of all imports in a folder of this project."""
    records = [f for f in sorted(folder.rglob("?*.dvc")) if not f.name.endswith((dvc_program.STORED, ".LICENSE.dvc"))]
    found = [_read(record.with_name(record.name.removesuffix(".dvc"))) for record in records]
    return [one for one in found if one is not None and of(one.content.parent) is None]


def _read(content: Path, below: str = ".") -> Provenance | None:
    """Return the provenance that a record states. `below`: the part of the content that is meant."""
    record = dvc_program.record(content)
    if not record.is_file():
        return None
    dependencies: list[dict[str, Any]] = read_mapping(record).get("deps") or []
    if len(dependencies) != 1:
        return None
    (dependency,) = dependencies
    inside = (Path(str(dependency["path"])) / below).as_posix()
    if repository := dependency.get("repo"):
        rev, commit = str(repository.get("rev", "")), str(repository.get("rev_lock", ""))
        return Provenance(content, str(repository["url"]).removeprefix("file://"), inside, rev, commit, True)
    return Provenance(content, inside, "", "", str(dependency.get("md5", "")), False)
