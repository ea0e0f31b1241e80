"""What first light leaves: a line per step in `all.jsonl`, and each step's files, in a folder or in one archive.

Everything is complete after every step, because the machine may be lost before the end.
"""

import json
import os
import tarfile
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

LINES, ARCHIVE = "all.jsonl", "steps.tar.gz"
TAIL = 4000
"""Characters of a step's output that its line keeps."""


class Results:
    """The folder of one run's results. Use as a context manager."""

    def __init__(self, folder: Path, archived: bool) -> None:
        """`archived`: the steps' files are in one archive only, for machines from which few files come back."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._temporary = folder, tempfile.TemporaryDirectory() if archived else None
        self._files = Path(self._temporary.name) if self._temporary else folder
        if self._temporary and (earlier := folder / ARCHIVE).exists():  # of other steps
            with tarfile.open(earlier) as archive:
                archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 and newer
                archive.extractall(self._files)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._temporary:
            self._temporary.cleanup()

    def add(self, name: str, step: dict[str, Any], output: str) -> None:
        """Write the files `name`.json and `name`.txt of a step, and its line."""
        (self._files / f"{name}.json").write_text(json.dumps(step, indent=1))
        (self._files / f"{name}.txt").write_text(output)
        with (self.folder / LINES).open("a") as lines:
            lines.write(json.dumps({**step, "output": output[-TAIL:]}) + "\n")
            lines.flush()
            os.fsync(lines.fileno())
        if self._temporary:
            self._archive()

    def _archive(self) -> None:
        """Replace the archive in one step, so that there is always a whole one."""
        part = self._files.with_suffix(".part")
        try:
            with tarfile.open(part, "w:gz") as archive:
                for path in sorted(self._files.iterdir()):
                    archive.add(path, path.name)
            new = self.folder / f".{ARCHIVE}"
            new.write_bytes(part.read_bytes())
            new.replace(self.folder / ARCHIVE)
        finally:
            part.unlink(missing_ok=True)
