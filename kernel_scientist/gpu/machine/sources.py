"""The texts that a submission's kernels are written in, and on which lines of its file they begin.

Runs in workers: standard library and yaml only.
"""

import linecache
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from kernel_scientist.gpu.machine.places import Place

SUBMISSION = "kernel.py"
"""What a submission's file is called where it is executed."""
MOST_CALLERS, WIDEST = 3, 60
"""Most callers that are named, and most characters of their lines."""


@dataclass
class Sources:
    """Quotes lines of a submission."""

    _texts: dict[str, tuple[list[str], int]] = field(default_factory=dict[str, tuple[list[str], int]])

    def add(self, name: str, text: str, whole: str) -> None:
        """Add a text that the compiler calls `name`. `whole`: the submission's file, which may contain it as it is."""
        start = whole.find(text) if text else -1
        self._texts[name] = text.splitlines(), whole.count("\n", 0, start) if start >= 0 else 0

    def quoted(self, file: str, line: int) -> tuple[int, str]:
        """Return the number of a line in the submission's file, and the line. Of a text that was put together from
        several, the number is that in the text. An unknown line is empty.
        """
        known = self._texts.get(PurePath(file).name)
        if known is None:
            return line, linecache.getline(file, line).strip()
        lines, before = known
        return before + line, lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def told(self, chain: Sequence[Place]) -> tuple[int, str, str]:
        """Return number and text of the submission's line that a chain (`Places.chain`) begins with, and the end of a
        sentence that says which lines call the function that was inlined there; that is empty without any.
        """
        (line, text), *outer = [self.quoted(*place) for place in chain] or [(0, "")]
        return line, text, "".join(f", called in line {number} ({of[:WIDEST]})" for number, of in outer[:MOST_CALLERS])
