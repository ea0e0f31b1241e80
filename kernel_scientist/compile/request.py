"""What a kernel's file may ask a builder for. Imports only the standard library, because it lives in the worker."""

from typing import NamedTuple

MOST_SOURCE, MOST_ARGUMENTS = 4 << 20, 1 << 16
"""Bytes of one build's sources, and of its names and flags together."""
MOST_BUILDS = 16
"""What one kernel's file may ask for."""


class CompileError(Exception):
    """The compiler refused a source; the message is the compiler's."""


class BuildRequest(NamedTuple):
    """One translation unit and how it is to be compiled."""

    source: str
    defines: dict[str, str]
    flags: list[str]
