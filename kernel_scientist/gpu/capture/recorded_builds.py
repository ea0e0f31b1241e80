"""Records what a submission passes to torch's extension builder or to hiprtc, instead of building it.

Runs in the untrusted process that imports the submission: imports the standard library and torch only.
"""

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import cpp_extension

LARGEST_FILE = 4 << 20
IMPLICIT = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>"
"""The lines that torch 2.13's `load_inline` puts before device sources."""


@dataclass(frozen=True)
class InlineBuild:
    """One extension: its device sources, the flags for the device compiler, the functions that Python may call."""

    name: str
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()

    def message(self) -> dict[str, Any]:
        """Return the build as plain data."""
        return asdict(self)


class RecordedExtension(ModuleType):
    """Replaces a built extension: every function records its call and returns its last tensor argument, or None."""

    def __init__(self, name: str, calls: list[str]) -> None:
        super().__init__(name)
        self.__dict__["_calls"] = calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return _function(f"{self.__name__}.{name}", self.__dict__["_calls"])


class Builds(list[InlineBuild]):
    """The extensions, in order; `calls` names each call of their functions."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def replacement(self, build: InlineBuild) -> RecordedExtension:
        """Record an extension and return its replacement."""
        self.append(build)
        return RecordedExtension(build.name, self.calls)


@contextlib.contextmanager
def captured() -> Generator[Builds]:
    """Record the arguments of `load_inline`, `load` and `torch.cuda._compile_kernel` within the context."""
    builds = Builds()

    def load_inline(name: str, cpp_sources: Any, *args: Any, **options: Any) -> RecordedExtension:
        named = dict(zip(("cuda_sources", "sycl_sources", "functions"), args, strict=False)) | options
        device = _texts(named.get("cuda_sources")) + _texts(named.get("hip_sources"))
        if device and not named.get("no_implicit_headers"):
            device = (IMPLICIT, *device)
        sources = device or _texts(cpp_sources)
        return builds.replacement(InlineBuild(name, sources, _flags(named), _names(named.get("functions"))))

    def load(name: str, sources: Any, *args: Any, **options: Any) -> RecordedExtension:
        named = dict(zip(("extra_cflags", "extra_cuda_cflags"), args, strict=False)) | options
        return builds.replacement(InlineBuild(name, tuple(map(_file, _texts(sources))), _flags(named)))

    def compile_kernel(kernel_source: str, kernel_name: str, *_: Any, **options: Any) -> Callable[..., Any]:
        header = str(options.get("header_code") or "")
        flags = tuple(str(f) for f in options.get("nvcc_options") or ())
        builds.append(InlineBuild(kernel_name, (header + kernel_source,), flags, (kernel_name,)))
        return _function(kernel_name, builds.calls)

    with (
        _replaced(cpp_extension, "load_inline", load_inline),
        _replaced(cpp_extension, "load", load),
        _replaced(torch.cuda, "_compile_kernel", compile_kernel),
    ):
        yield builds


def _function(name: str, calls: list[str]) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        calls.append(name)
        tensors = [a for a in (*args, *named.values()) if isinstance(a, torch.Tensor)]
        return tensors[-1] if tensors else None

    return call


def _texts(sources: Any) -> tuple[str, ...]:
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


def _flags(named: dict[str, Any]) -> tuple[str, ...]:
    given: Sequence[Any] = named.get("extra_cuda_cflags") or ()
    return tuple(str(flag) for flag in given)


def _names(functions: Any) -> tuple[str, ...]:
    """Return the functions of `load_inline`: one name, a list, or a dictionary with their docstrings."""
    return tuple(str(name) for name in _texts(functions))


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Generator[None]:
    before = getattr(owner, name, None)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
