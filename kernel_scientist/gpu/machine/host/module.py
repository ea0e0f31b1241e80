"""Imports the built host code of a submission, and raises what its calls met in HIP's runtime.

Runs in the untrusted process: imports the standard library and the stand-in's session only.
"""

import contextlib
import functools
import re
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, cast

from kernel_scientist.compilers import extension
from kernel_scientist.compilers.request import CompileError, ExtensionRequest
from kernel_scientist.gpu.machine.host import submitted
from kernel_scientist.gpu.machine.host.session import HostError, Session
from kernel_scientist.gpu.machine.host.submitted import Text
from kernel_scientist.gpu.machine.launch import NotSimulatedError

_UNDEFINED = re.compile(r"undefined symbol: (\S+)")
_OF_ROCM = re.compile(r"_*(hip|roc|rccl|nccl|miopen)\w+")


def imported(
    request: ExtensionRequest, path: str, is_module: bool, session: Session, file: str = ""
) -> ModuleType | None:
    """Return the module of a built extension; its functions raise what they met in HIP's runtime.

    file: the submission's text; without it lines are those of the extension's sources. None for one that is no module,
    but registers operators. Raises CompileError if it cannot be loaded, NotSimulatedError if it calls a function of
    ROCm that the stand-in lacks.
    """
    sources = submitted.texts(request, file)
    try:
        module = extension.plain(request, path, is_module)
    except CompileError as error:
        if (name := _missing(str(error))) is None:
            raise
        raise NotSimulatedError(f"{name}{submitted.mention(name, sources)} is not simulated") from error
    check(sources, session)
    if module is not None:
        _wrap(module, module.__name__, sources, session, set())
    return module


def _wrap(owner: ModuleType | type, name: str, sources: Sequence[Text], session: Session, known: set[int]) -> None:
    """Wrap an extension's functions, classes and submodules. Constructors stay as they are: pybind11 needs its own."""
    known.add(id(owner))
    for key, value in list(vars(owner).items()):
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(value, (type, ModuleType)):
            if id(value) not in known and (home == name or str(home).startswith(f"{name}.")):
                _wrap(value, name, sources, session, known)
        elif key == "__call__" or (not key.startswith("__") and callable(value)):
            plain = value.__func__ if isinstance(value, staticmethod) else value
            checked = _checked(cast(Callable[..., Any], plain), sources, session)
            with contextlib.suppress(TypeError):  # a type that is written in C without pybind11
                setattr(owner, key, staticmethod(checked) if isinstance(value, staticmethod) else checked)


def _checked(function: Callable[..., Any], sources: Sequence[Text], session: Session) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            result = function(*arguments, **named)
        except Exception:
            check(sources, session)  # the host code raised because HIP failed: the cause says more
            raise
        check(sources, session)
        return result

    return call


def check(sources: Sequence[Text], session: Session) -> None:
    """Raise the first error of the stand-in, with its line: NotSimulatedError for the stand-in's own limits."""
    try:
        session.check()
    except HostError as error:
        place = submitted.launch(error.place, error.reason, sources) if error.place else ""
        function = f"{error.function}{place or submitted.mention(error.function, sources)}"
        if error.is_limit:
            raise NotSimulatedError(f"{function}: {error.reason}") from None
        raise HostError(function, error.reason) from None


def _missing(words: str) -> str | None:
    """Return the function of ROCm that a module was not loaded for, if that is the reason."""
    found = _UNDEFINED.search(words)
    return found[1] if found is not None and _OF_ROCM.fullmatch(found[1]) else None
