"""The texts that a submission's kernels are written in, and on which lines of its file they begin.

Runs in workers: standard library and yaml only.
"""

import linecache
from dataclasses import dataclass, field
from pathlib import PurePath

from kernel_scientist.gpu.machine.listing import Statement

SUBMISSION = "kernel.py"
"""What a submission's file is called where it is executed."""
MOST_CALLERS = 3


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

    def of(self, statement: Statement) -> tuple[int, str]:
        """Return number and text of the submission's line that an instruction belongs to, as `quoted` does.

        Of a library's function that was inlined it is the line that calls it.
        """
        places = [(statement.file, statement.source_line), *statement.callers]
        return self.quoted(*next((place for place in places if self._knows(place[0])), places[0]))

    def callers(self, statement: Statement, line: int) -> str:
        """Return the lines that call the function which a line of the submission is in, as the end of a sentence.

        Empty unless the instruction was inlined there.
        """
        own = [self.quoted(*place) for place in statement.callers if self._knows(place[0])]
        numbers = [number for number, _ in own]
        outer = own[numbers.index(line) + 1 :] if line in numbers else own
        return "".join(f", called in line {number} ({text})" for number, text in outer[:MOST_CALLERS])

    def _knows(self, file: str) -> bool:
        name = PurePath(file).name
        return name in self._texts if self._texts else name == SUBMISSION
