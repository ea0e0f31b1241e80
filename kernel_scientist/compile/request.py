"""Build requests of a kernel's file. Imports only the standard library, because it lives in the worker."""

from typing import NamedTuple

MOST_SOURCE, MOST_ARGUMENTS = 4 << 20, 1 << 16
"""Most bytes of a build's sources, and of its names and flags in total."""
MOST_BUILDS = 16
"""Most builds that one kernel's file may request."""


class CompileError(Exception):
    """Compiler error in a source, with the compiler's message."""


class BuildRequest(NamedTuple):
    """One translation unit, with its compiler flags."""

    source: str
    defines: dict[str, str]
    flags: list[str]
