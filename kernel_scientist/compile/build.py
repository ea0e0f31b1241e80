"""Builds a worker's request: a C++ kernel with g++, or an extension with torch's builder."""

from kernel_scientist.compile import extension_builder, gxx
from kernel_scientist.compile.extension import ExtensionRequest, Request
from kernel_scientist.compile.gxx import Built


def build(request: Request, device: str, timeout_s: float) -> Built:
    """Compile a request for one of torch's devices, or return the earlier build.

    Compiler errors are in the report, not an exception. Raises SetupError if this machine lacks a compiler.
    """
    if isinstance(request, ExtensionRequest):
        return extension_builder.build(request, extension_builder.architecture(device), timeout_s)
    return gxx.build(request, timeout_s)
