"""Replacement of `torch.utils.cpp_extension.load_inline` in workers; the evaluator's builder builds the extension.

While a kernel's file is imported in a worker, this replaces torch's function: it sends its arguments to the builder
and imports the resulting shared object under the extension's name. Outside the harness, a file uses torch's own
function. Imports only the standard library, because it lives in the worker; `build` compiles.
"""

import contextlib
import ctypes
import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ExtensionFileLoader
from types import ModuleType
from typing import Any, cast

from kernel_scientist.compilers import cpp
from kernel_scientist.compilers.cpp import NativeCalls
from kernel_scientist.compilers.request import NAME, CompileError, ExtensionRequest

MODULE = "torch.utils.cpp_extension"


def replace_torchs(source: str) -> None:
    """Put our functions in place of torch's in this process, if a kernel's file mentions torch's module."""
    if MODULE.rpartition(".")[2] in source:
        module = importlib.import_module(MODULE)
        module.__dict__.update(load_inline=load_inline, load=load)


def load_inline(
    name: str,
    cpp_sources: Any,
    cuda_sources: Any = None,
    sycl_sources: Any = None,
    functions: Any = None,
    extra_cflags: Any = None,
    extra_cuda_cflags: Any = None,
    extra_sycl_cflags: Any = None,
    extra_ldflags: Any = None,
    extra_include_paths: Any = None,
    build_directory: Any = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> ModuleType | str:
    """Build and import an extension, as torch's function of this name (2.13) does.

    One that is no Python module is loaded for the operators that it registers, and its path is returned.
    The builder chooses place and verbosity of the build: build_directory, verbose, keep_intermediates and use_pch are
    ignored. Raises CompileError with the compiler's messages, or if an option is not supported.
    """
    if with_sycl or sycl_sources or extra_sycl_cflags:
        raise CompileError("load_inline: SYCL is for Intel's GPUs, and none of them is a target")
    if not isinstance(cast(object, name), str) or not NAME.fullmatch(name):
        raise CompileError(f"load_inline: {str(name)[:100]!r} is not a C identifier")
    device = _texts("cuda_sources", cuda_sources)
    request = ExtensionRequest(
        name=name,
        cpp_sources=_texts("cpp_sources", cpp_sources),
        cuda_sources=device,
        functions=_functions(functions),
        cflags=_texts("extra_cflags", extra_cflags),
        cuda_cflags=_texts("extra_cuda_cflags", extra_cuda_cflags),
        ldflags=_texts("extra_ldflags", extra_ldflags),
        include_paths=_texts("extra_include_paths", extra_include_paths),
        with_cuda=bool(device) if with_cuda is None else bool(with_cuda),
        error_handling=bool(with_pytorch_error_handling),
        headers=not no_implicit_headers,
    )
    return _imported(request, cpp.built(request), is_python_module)


def load(*_: Any, **__: Any) -> ModuleType:
    """Refuse torch's `load`. Raises CompileError."""
    raise CompileError(f"{MODULE}.load compiles files, and a kernel is one file: give the sources to load_inline")


def _imported(request: ExtensionRequest, path: str, is_module: bool) -> ModuleType | str:
    """Import or load a shared object; wrap its functions, methods and torch operators to count calls (`op_profile`).
    Raises CompileError if it does not link.

    A muted function does nothing and returns None. A kernel that needs the return value then fails or returns None,
    which counts as a wrong output.
    """
    before = _operators()
    module = importer(request, path, is_module)
    NativeCalls.operators |= _operators() - before
    if module is None:
        return path
    _count(module, module.__name__, set())
    return module


def plain(request: ExtensionRequest, path: str, is_module: bool) -> ModuleType | None:
    """Import a shared object as Python does, or only load it. Raises CompileError if it does not link."""
    loader = ExtensionFileLoader(request.name, path)
    spec = importlib.util.spec_from_loader(request.name, loader)
    assert spec is not None
    try:
        if not is_module:
            ctypes.CDLL(path)
            return None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except (ImportError, OSError) as error:  # symbols may be undefined
        words = f"the extension was built and cannot be imported: {error}".replace(path, request.name)
        raise CompileError(words) from error
    return module


importer: Callable[[ExtensionRequest, str, bool], ModuleType | None] = plain
"""Imports a built extension; a simulated GPU's is another (`gpu.machine.host`)."""


def _operators() -> set[str]:
    """Return the names of all operators registered with torch, without overloads."""
    return {name.partition(".")[0] for name in sys.modules["torch"]._C._dispatch_get_all_op_names()}


def _count(owner: ModuleType | type, name: str, known: set[int]) -> None:
    """Wrap an extension's functions, classes and submodules so that their calls are counted.

    Constructors are not wrapped, because pybind11 fails if a constructor does nothing.
    """
    known.add(id(owner))
    for key, value in list(vars(owner).items()):
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(value, (type, ModuleType)):
            if id(value) not in known and (home == name or str(home).startswith(f"{name}.")):
                _count(value, name, known)
        elif key == "__call__" or (not key.startswith("__") and callable(value)):
            plain = value.__func__ if isinstance(value, staticmethod) else value
            counted = _counted(cast(Callable[..., Any], plain))
            with contextlib.suppress(TypeError):  # a type that is written in C without pybind11
                setattr(owner, key, staticmethod(counted) if isinstance(value, staticmethod) else counted)


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        NativeCalls.calls += 1
        return None if NativeCalls.muted else function(*arguments, **named)

    return call


def _functions(given: Any) -> dict[str, str] | None:
    """Return docstrings by function, from a name, a list of names or a dictionary."""
    if given is None:
        return None
    if isinstance(given, dict):
        named = cast(dict[Any, Any], given)
        return dict(zip(_texts("functions", list(named)), _texts("functions", list(named.values())), strict=True))
    return {name: name for name in _texts("functions", given)}


def _texts(what: str, given: Any) -> list[str]:
    texts: Sequence[Any] = (given,) if isinstance(given, str) else given or ()
    if not isinstance(cast(object, texts), (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise CompileError(f"load_inline: {what} must be a string or a list of strings")
    return list(texts)
