"""The texts that a submission's kernels are written in, and on which lines of its file they begin.

Runs in workers: standard library and yaml only.
"""

import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

SUBMISSION = "kernel.py"
"""What a submission's file is called where it is executed."""
_FUNCTION = re.compile(r"(?:def|async def|class)\b|@")
_LOOP = re.compile(r"(?:while|for)\b|.*\b(?:while|for) ?\(|.*\bdo ?\{")
FURTHEST = 100
"""Lines in which a loop is looked for."""
MOST_CALLERS, WIDEST = 3, 60
"""Most callers that are named, and most characters of their lines."""
Place = tuple[str, int]
"""A file and a line."""


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
        return line + (known[1] if known else 0), self._line(file, line).strip()

    def _line(self, file: str, line: int) -> str:
        known = self._texts.get(PurePath(file).name)
        if known is None:
            return linecache.getline(file, line)
        return known[0][line - 1] if 0 < line <= len(known[0]) else ""

    def loop(self, chain: Sequence[Place], has_line: bool) -> tuple[int, str]:
        """Return number and text of the line that a wave which never leaves a loop is in. `has_line`: whether its
        compiler says which line its instruction comes from.

        That is the line that a chain begins with. But compilers give no line to what they move out of a loop, and
        Triton's gives what two lines have in common to the first, which may lie before the loop: if the line is in
        none, it is the nearest loop of the same function.
        """
        file, first = chain[0] if chain else ("", 0)
        if has_line and (not file.endswith(".py") or any(self._is_in_loop(*place) for place in chain)):
            return self.quoted(file, first)
        for ways in (range(first, first + FURTHEST), range(first - 1, max(0, first - FURTHEST), -1)):
            for line in ways:
                number, found = self.quoted(file, line)
                if _LOOP.match(found):
                    return number, found
                if _FUNCTION.match(found):
                    break
        return self.quoted(file, first)

    def _is_in_loop(self, file: str, line: int) -> bool:
        """Return whether a line of Python begins a loop or is indented below one."""
        if _LOOP.match(self._line(file, line).strip()):
            return True
        inner = _indentation(self._line(file, line))
        for text in (self._line(file, n) for n in range(line - 1, 0, -1)):
            if text.strip() and _indentation(text) < inner:
                inner = _indentation(text)
                if _LOOP.match(text.strip()):
                    return True
        return False

    def told(self, chain: Sequence[Place]) -> tuple[int, str, str]:
        """Return number and text of the submission's line that a chain (`LineTable.chain`) begins with, and the end of
        a sentence that says which lines call the function that was inlined there; that is empty without any.
        """
        (line, text), *outer = [self.quoted(*place) for place in chain] or [(0, "")]
        return line, text, "".join(f", called in line {number} ({of[:WIDEST]})" for number, of in outer[:MOST_CALLERS])


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip())
