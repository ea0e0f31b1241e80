"""The archive: a zip file whose manifest lists the digests of its other files. Nothing of it is ever executed."""

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evidence import Manifest
from kernel_scientist.records.names import FILE

FORMAT = 1
MANIFEST, LINEAGE, PROBLEM, ENVIRONMENT = "bundle.json", "lineage.json", "problem.json", "environment.json"
EVALUATION, SAMPLES = "evaluation.json", "samples.json"
CONFIRMATION, VALIDATION = "confirmation_evidence.json", "validation.json"
MOST_BYTES, MOST_FILES = 1 << 30, 10_000
"""Size of an archive's contents, and number of its files, beyond which it is not read."""
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How the files of an archive may be packed."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Date of every file in an archive, so that the same contents give the same archive."""


def source_file(kernel: str) -> str:
    """Return the name of the file with a kernel's source."""
    return f"sources/{FILE.encode(kernel)}.py"


def sha256(content: bytes) -> str:
    """Return the sha256 of some bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Archive:
    """An archive in memory."""

    manifest: Manifest
    files: Mapping[str, bytes]
    """Contents by name, without the manifest."""

    def write(self, path: Path) -> None:
        """Write the archive and the folders above it. Raises SetupError when that is not possible."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, content in {MANIFEST: self.manifest.model_dump_json(indent=1), **self.files}.items():
                    archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
        except OSError as error:
            raise SetupError(f"cannot write {path}: {error.strerror}") from error

    @staticmethod
    def read(path: Path) -> "Archive":
        """Return an archive. Raises SetupError for a file that is none."""
        try:
            with zipfile.ZipFile(path) as archive:
                _require_small(path, archive.infolist())
                contents = {name: archive.read(name) for name in archive.namelist()}
            manifest = Manifest.model_validate_json(contents.pop(MANIFEST))
        except ValidationError as error:
            raise SetupError(f"{path} is not an archive of evidence: {MANIFEST}: {first(error)}") from error
        except (zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError, RuntimeError, EOFError) as error:
            raise SetupError(f"{path} is not an archive of evidence: {error}") from error
        except OSError as error:
            raise SetupError(f"cannot read {path}: {error.strerror or error}") from error
        except KeyError as error:
            raise SetupError(f"{path} is not an archive of evidence: it has no {MANIFEST}") from error
        if manifest.format != FORMAT:
            raise SetupError(f"{path} has format {manifest.format}; this version of the package reads {FORMAT}")
        return Archive(manifest, contents)


def first(error: ValidationError) -> str:
    """Return the first fault of a JSON text in one line: where, and what."""
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, fault["loc"]))
    return f"{place}: {fault['msg']}" if place else str(fault["msg"])


def _require_small(path: Path, listed: list[zipfile.ZipInfo]) -> None:
    if len(listed) > MOST_FILES or sum(one.file_size for one in listed) > MOST_BYTES:
        raise SetupError(f"{path} is not an archive of evidence: it has too many files, or too large ones")
    if foreign := next((one.filename for one in listed if one.compress_type not in COMPRESSIONS), None):
        raise SetupError(f"{path} is not an archive of evidence: {foreign} is neither stored nor deflated")
    names = [one.filename for one in listed]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise SetupError(f"{path} is not an archive of evidence: it has two files {doubled}")
