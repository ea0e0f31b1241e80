"""Builds what a worker asks for: a C++ kernel's unit with g++, an extension with torch's machinery."""

from kernel_scientist.compile import extension_builder, gxx
from kernel_scientist.compile.extension import ExtensionRequest, Request
from kernel_scientist.compile.gxx import Built


def build(request: Request, device: str, timeout_s: float) -> Built:
    """Compile a request for one of torch's devices, or return what was built before.

    A refusal is a report, not an exception. Raises SetupError where this machine lacks a compiler.
    """
    if isinstance(request, ExtensionRequest):
        return extension_builder.build(request, extension_builder.architecture(device), timeout_s)
    return gxx.build(request, timeout_s)
