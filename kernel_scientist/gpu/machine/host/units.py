"""The translation units of an extension, as torch's `load_inline` writes them."""

from dataclasses import dataclass

from kernel_scientist.compilers.request import ExtensionRequest
from kernel_scientist.gpu.toolchains.sources import HIP_RUNTIME, hipified, joined

TORCH = "#include <torch/extension.h>\n"
ON_DEVICE = "#include <torch_on_device.h>\n"


@dataclass(frozen=True)
class Units:
    """The texts of an extension."""

    host: str
    """`cpp_sources`, without torch's headers and the module."""
    device: str
    """`cuda_sources`; empty if there are none."""
    module: str
    """The definition of the module that Python imports; empty if the sources have it."""

    def whole(self) -> list[str]:
        """Return one text of everything: half the time, and it compiles unless the sources repeat each other."""
        return [f"{TORCH}{ON_DEVICE}{self.host}\n{self.device}\n{self.module}"]

    def apart(self) -> list[str]:
        """Return the texts as torch compiles them."""
        return [
            f"{TORCH}{ON_DEVICE}{self.host}\n{self.module}",
            *([f"{TORCH}{ON_DEVICE}{self.device}"] if self.device else []),
        ]


def of(request: ExtensionRequest) -> Units:
    """Return the units of an extension, in HIP's names."""
    host = joined(request.cpp_sources, f"{request.name}.cpp")
    device = joined(request.cuda_sources, request.name)
    runtime = f"{HIP_RUNTIME}\n" if request.cuda_sources else ""
    return Units(hipified(host), runtime + hipified(device) if device else "", _module(request))


def _module(request: ExtensionRequest) -> str:
    """Return what torch's `load_inline` appends to bind functions."""
    if request.functions is None:
        return ""
    wrapped = "torch::wrap_pybind_function({0})" if request.error_handling else "&{0}"
    lines = [f'm.def("{name}", {wrapped.format(name)}, {_quoted(words)});' for name, words in request.functions.items()]
    return '#line 1 "functions"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n' + "\n".join(lines) + "\n}\n"


def _quoted(text: str) -> str:
    """Return a C string literal."""
    return (
        '"' + "".join(c if c.isalnum() or c in " _" else f"\\{ord(c):03o}" if ord(c) < 256 else "?" for c in text) + '"'
    )
