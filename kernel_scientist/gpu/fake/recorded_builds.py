"""Records what a submission passes to torch's extension builder or to hiprtc, instead of building it.

Runs in the untrusted process that imports the submission: imports the standard library and torch only.
"""

import contextlib
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import cpp_extension

from kernel_scientist.gpu.fake.device import replaced
from kernel_scientist.records.gpu import Build

LARGEST_FILE = 4 << 20
IMPLICIT = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>"
"""The lines that torch 2.13's `load_inline` puts before device sources."""


class RecordedExtension(ModuleType):
    """Replaces a built extension: every function returns its last tensor argument, or None."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return _last_tensor


@contextlib.contextmanager
def captured() -> Generator[list[Build]]:
    """Record the arguments of `load_inline`, `load` and `torch.cuda._compile_kernel` within the context."""
    builds: list[Build] = []

    def recorded(name: str, sources: Iterable[str], named: dict[str, Any]) -> RecordedExtension:
        flags, functions = _flags(named.get("extra_cuda_cflags")), _texts(named.get("functions"))
        builds.append(Build(name=name, sources=tuple(sources), flags=flags, functions=tuple(map(str, functions))))
        return RecordedExtension(name)

    def load_inline(name: str, cpp_sources: Any, *args: Any, **options: Any) -> RecordedExtension:
        named = dict(zip(("cuda_sources", "sycl_sources", "functions"), args, strict=False)) | options
        device = _texts(named.get("cuda_sources")) + _texts(named.get("hip_sources"))
        if device and not named.get("no_implicit_headers"):
            device = (IMPLICIT, *device)
        return recorded(name, device or _texts(cpp_sources), named)

    def load(name: str, sources: Any, *args: Any, **options: Any) -> RecordedExtension:
        named = dict(zip(("extra_cflags", "extra_cuda_cflags"), args, strict=False)) | options
        return recorded(name, map(_file, _texts(sources)), named)

    def compile_kernel(kernel_source: str, kernel_name: str, *_: Any, **options: Any) -> Callable[..., Any]:
        source, flags = str(options.get("header_code") or "") + kernel_source, _flags(options.get("nvcc_options"))
        builds.append(Build(name=kernel_name, sources=(source,), flags=flags, functions=(kernel_name,)))
        return _last_tensor

    compilers = (cpp_extension, "load_inline", load_inline), (cpp_extension, "load", load)
    with replaced((*compilers, (torch.cuda, "_compile_kernel", compile_kernel))):
        yield builds


def _last_tensor(*args: Any, **named: Any) -> Any:
    tensors = [a for a in (*args, *named.values()) if isinstance(a, torch.Tensor)]
    return tensors[-1] if tensors else None


def _texts(sources: Any) -> tuple[str, ...]:
    """Return one text, a list of them, or the keys of a dictionary (functions with their docstrings)."""
    if not sources:
        return ()
    return (sources,) if isinstance(sources, str | Path) else tuple(sources)  # pyright: ignore[reportReturnType]


def _file(path: str) -> str:
    """Return a source file's text, or an `#error` line if it cannot be read."""
    try:
        with Path(path).open(errors="replace") as file:
            return file.read(LARGEST_FILE)
    except OSError as error:
        return f"#error {path}: {error.strerror}"


def _flags(given: Any) -> tuple[str, ...]:
    return tuple(str(flag) for flag in given or ())
