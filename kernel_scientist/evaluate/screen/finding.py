"""A finding: a detail of a kernel's source that readers of its result should know, or that rejects it."""

from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """Severity of a finding. HIGH: honest kernels hardly ever do this; LOW: they often do."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Finding(NamedTuple):
    """One match of a rule in a source."""

    name: str
    """Kebab-case, such as `tampering:patch` or `kernelguard:timer-monkeypatch`."""
    severity: Severity
    line: int | None
    """1-based line of the kernel's file; None for the whole file."""
    detail: str
    """Description of the match."""
    tampering: bool = False
    """Whether this finding rejects the kernel (unless the policy allows tampering)."""
