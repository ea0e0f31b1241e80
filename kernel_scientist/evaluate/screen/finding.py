"""What the screen sees, and what it hands on."""

from enum import StrEnum
from typing import NamedTuple

from kernel_scientist.records.base import Record


class Severity(StrEnum):
    """How much a label should worry a reader: HIGH is hardly ever honest in a kernel, LOW often is."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


LOW, MEDIUM, HIGH = Severity.LOW, Severity.MEDIUM, Severity.HIGH


class Finding(NamedTuple):
    """One thing seen in a source."""

    label: str
    severity: Severity
    line: int | None
    detail: str


class Label(Record):
    """Something in a source that a reader of its result should know. It never decides by itself."""

    name: str
    """Kebab-case, such as `library-call`; with `kernelguard:` before it when it is one of that library's rules."""
    severity: Severity
    line: int | None
    """1-based line of the kernel's file, where there is one."""
    detail: str
    """What was seen."""


LONGEST = 200_000
"""Characters of a source, or of a string it spells, that are read; an honest kernel has a tenth of that."""
LARGEST = 100_000
"""Nodes of a syntax tree that are read, which takes about a second; an honest kernel has a few thousand."""
MOST = 8
"""Findings of one rule that are kept."""
