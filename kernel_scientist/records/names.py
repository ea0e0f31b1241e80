"""Texts as names: of cases, files, metrics, artifacts. Two texts never get the same name, and a name is legible.

A sign that a name may not have is written as its number in hexadecimal between two separators, such as `_x2c_` for a
comma; so is a separator that would begin such a mark by itself. A text that is too long is cut, and ends with a digest.
Where nobody reads names back, every changed one ends so and is easier to read.
"""

import hashlib
import re
from dataclasses import dataclass

DIGEST = 16
"""Hexadecimal digits of the digest at the end of a name that was cut."""


@dataclass(frozen=True)
class Naming:
    """What names of one kind may consist of."""

    allowed: str
    """Signs that stay, as the inside of a class of a regular expression."""
    separator: str
    """An allowed sign, which marks what was replaced."""
    longest: int
    """Characters of the longest name."""
    path: bool = False
    """Whether a name may be a path, as MLflow reads it: without empty parts, `.` and `..`."""
    one_way: bool = False
    """Whether other signs become separators, and a digest tells what was changed from everything else."""

    def encode(self, text: str) -> str:
        """Return the name of a text."""
        is_path = self.path and all(part.strip(".") for part in text.split("/"))
        hidden = self._mark("2e") if text.startswith(".") else "" if text else self._mark("")
        name = hidden + self._marked(text.removeprefix("."), self.allowed + "/" * is_path)
        if len(name) <= self.longest and (name == text or not self.one_way):
            return name
        end = self._mark(f"z{hashlib.sha256(name.encode()).hexdigest()[:DIGEST]}")
        shown = re.sub(rf"[^{self.allowed}]+", self.separator, text.lower()) if self.one_way else name
        return shown[: self.longest - len(end)] + end

    def decode(self, name: str) -> str:
        """Return the text of a name. Raises ValueError for one that ends with a digest."""
        mark = re.escape(self.separator)
        if re.search(rf"{mark}xz[0-9a-f]{{{DIGEST}}}{mark}$", name):
            raise ValueError(f"{name}: its text does not stand in it")
        return re.sub(rf"{mark}x([0-9a-f]*){mark}", lambda found: chr(int(found[1], 16)) if found[1] else "", name)

    def _marked(self, text: str, allowed: str) -> str:
        mark = re.escape(self.separator)
        ambiguous = rf"{mark}(?=x[0-9a-f]*(?:{mark}|[^{allowed}])|xz)"
        return re.sub(rf"[^{allowed}]|{ambiguous}", lambda found: self._mark(f"{ord(found[0]):x}"), text)

    def _mark(self, inside: str) -> str:
        return f"{self.separator}x{inside}{self.separator}"


FILE = Naming(r"A-Za-z0-9_.\-", "_", 120)
"""Cases, and parts of names of files, campaigns and registered models."""
MLFLOW = Naming(r"A-Za-z0-9_.\- ", ".", 250, path=True)
"""Metrics and parameters of MLflow. Its separator leaves the names of cases in them as they are. MLflow takes letters
outside ASCII too, which databases may take for others."""
PREFECT = Naming(r"a-z0-9\-", "-", 200, one_way=True)
"""Artifacts of Prefect."""


def slug(problem: str) -> str:
    """Return a problem's name for files and registries. Problems of which two are the same are refused (`find`)."""
    return FILE.encode(re.sub(r"[/@:]", "-", problem))
