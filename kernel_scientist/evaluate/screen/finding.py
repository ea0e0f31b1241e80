"""A finding: one thing in a kernel's source that a reader of its result should know, or that gets it rejected."""

from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """How rarely an honest kernel does this: HIGH hardly ever, LOW often."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Finding(NamedTuple):
    """One thing found in a source."""

    name: str
    """Kebab-case, such as `tampering:patch` or `kernelguard:timer-monkeypatch`."""
    severity: Severity
    line: int | None
    """1-based line of the kernel's file, where there is one."""
    detail: str
    """What was found."""
    tampering: bool = False
    """Whether the kernel is rejected for it, unless the policy allows tampering."""
