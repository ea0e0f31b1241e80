"""`load(SOURCE, defines=..., flags=...)`: compiles `extern "C"` functions for the file of a C++ kernel.

    kernel = load(SOURCE, defines=TUNABLES, flags=FLAGS)

    def custom_kernel(data):
        x, out = data
        kernel.copy(x, out, x.numel())     # tensors go as data pointers, ints as int64_t, floats as double
        return out

Inside the harness the evaluator's builder compiles, never the worker. Imports only the standard
library, because it lives in the worker. `kernel_scientist.compilers.gxx` is the compiler itself.
"""

import contextlib
import ctypes
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, ClassVar

from kernel_scientist.compilers.request import BuildRequest, CompileError, Request

Builder = Callable[[Request], str]
"""Function from request to the path of a shared object."""
_builder: Builder | None = None


class NativeCalls:
    """Counts of calls of native functions, and whether they are muted."""

    muted = False
    calls = 0
    operators: ClassVar[set[str]] = set()
    """Names of operators that extensions have registered with torch, such as `own::copy`."""


@contextlib.contextmanager
def built_by(builder: Builder) -> Generator[None]:
    """Let `load` and `load_inline` use a builder within this context. After it the evaluator accepts no requests."""
    global _builder
    _builder = builder
    try:
        yield
    finally:
        _builder = _refuse


def _refuse(request: Request) -> str:
    what = "load: C++ is" if isinstance(request, BuildRequest) else "load_inline: extensions are"
    raise CompileError(f"{what} built while the kernel's file is imported, not in a call")


def built(request: Request) -> str:
    """Return the path of the shared object that this process's builder makes. Raises CompileError, also without one."""
    return (_builder or _refuse)(request)


class SharedObject:
    """A loaded shared object; its functions are attributes."""

    def __init__(self, path: str) -> None:
        self._handle = ctypes.CDLL(path)

    def __getattr__(self, name: str) -> Callable[..., None]:
        try:
            function = self._handle[name]
        except AttributeError as error:
            raise AttributeError(f'the C++ source exports no extern "C" function {name!r}') from error
        function.restype = None

        def call(*arguments: Any) -> None:
            NativeCalls.calls += 1
            if not NativeCalls.muted:
                function(*[_convert(a) for a in arguments])

        setattr(self, name, call)
        return call


def load(source: str, defines: Mapping[str, object] | None = None, flags: Sequence[str] = ()) -> SharedObject:
    """Compile `source` with `-Dname=value` for every define and the extra `flags`, and load it.

    Raises CompileError with the compiler's messages.
    """
    request = BuildRequest(source, {k: str(v) for k, v in (defines or {}).items()}, list(flags))
    if _builder is not None:
        return SharedObject(_builder(request))
    from kernel_scientist.compilers import gxx  # a kernel's file run by hand, outside the harness

    built = gxx.build(request)
    if built.path is None:
        raise CompileError(built.report.log)
    return SharedObject(str(built.path))


def _convert(argument: Any) -> Any:
    if hasattr(argument, "data_ptr"):
        return ctypes.c_void_p(argument.data_ptr())
    if isinstance(argument, int):
        return ctypes.c_int64(argument)
    if isinstance(argument, float):
        return ctypes.c_double(argument)
    raise TypeError(f"{type(argument).__name__} cannot be passed to C++; tensors, ints and floats can")
