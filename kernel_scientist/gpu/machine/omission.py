"""A wait that code lacks: an instruction that comes before what it depends on is done.

Runs in workers: standard library only.
"""

import re
from dataclasses import dataclass

from kernel_scientist.gpu.machine.listing import Statement


@dataclass(frozen=True)
class Omission:
    """A place where a wait is missing."""

    statement: Statement
    """What comes too early."""
    cause: Statement
    """What is not done by then."""
    words: str
    """What goes wrong, with `{statement}` and `{cause}` for the two."""
    remedy: str
    """The instruction that is missing, such as `s_waitcnt vmcnt(0)`."""

    @property
    def sentence(self) -> str:
        """Return it as a sentence."""
        where = self.statement
        place = f"{where.file}:{where.source_line}, " if where.source_line else ""
        cause = f"`{_text(self.cause)}` (assembly line {self.cause.line})"
        said = self.words.format(statement=f"`{_text(where)}`", cause=cause)
        return f"{place}assembly line {where.line}: {said}: `{self.remedy}` is missing"


def _text(statement: Statement) -> str:
    return re.sub(r"\s+", " ", f"{statement.mnemonic} {statement.operands}").strip()
