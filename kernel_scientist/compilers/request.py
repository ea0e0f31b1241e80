"""Build requests of a kernel's file. Imports only the standard library, because it lives in the worker."""

import re
from typing import NamedTuple

MOST_SOURCE, MOST_ARGUMENTS = 4 << 20, 1 << 16
"""Most bytes of a build's sources, and of its names and flags in total."""
MOST_BUILDS = 16
"""Most builds that one kernel's file may request."""
NAME = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)
"""Pattern of an extension's name, which becomes part of a C function's name."""


class CompileError(Exception):
    """Compiler error in a source, with the compiler's message."""


class BuildRequest(NamedTuple):
    """One translation unit, with its compiler flags."""

    source: str
    defines: dict[str, str]
    flags: list[str]


class ExtensionRequest(NamedTuple):
    """An extension and how it is to be compiled."""

    name: str
    cpp_sources: list[str]
    cuda_sources: list[str]
    functions: dict[str, str] | None
    """Functions to bind, with their docstrings; None where the source binds them itself."""
    cflags: list[str]
    cuda_cflags: list[str]
    ldflags: list[str]
    include_paths: list[str]
    with_cuda: bool
    error_handling: bool
    """Whether torch turns C++ exceptions into Python's."""
    headers: bool
    """Whether torch puts its own headers before the sources."""


Request = BuildRequest | ExtensionRequest
