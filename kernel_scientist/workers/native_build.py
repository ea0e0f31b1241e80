"""Builds the native part of the workers (native.cpp), once per compiler and processor."""

from pathlib import Path

from kernel_scientist.compile import gxx
from kernel_scientist.compile.request import BuildRequest
from kernel_scientist.records.errors import SetupError
from kernel_scientist.workers.native import SOURCE


def build() -> Path:
    """Build the native part of the workers (native.cpp). Raises SetupError with the compiler's messages.

    It is linked with OpenMP's runtime, so that OpenMP reads our settings before a kernel can change them.
    """
    built = gxx.build(BuildRequest(SOURCE.read_text(), {}, ["-pthread"]))
    if built.path is None:
        raise SetupError(f"the compiler refuses the harness's own {SOURCE.name}: {built.report.log}")
    return built.path
