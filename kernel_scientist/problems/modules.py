"""A problem's Python files as modules: `reference`, and what it imports from its folder (`task`, `utils`, ...)."""

import contextlib
import sys
import threading
from collections.abc import Generator, Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from kernel_scientist.records.errors import SetupError, one_line

_lock = threading.RLock()


class _Finder(MetaPathFinder, Loader):
    """Finds modules among the problem's files before any that are installed under the same name."""

    def __init__(self, sources: Mapping[str, str], folder: Path) -> None:
        self.sources, self.folder = sources, folder

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module of the problem."""
        return spec_from_loader(fullname, self, origin=fullname) if fullname in self.sources else None

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module's file."""
        path = self.folder / f"{module.__name__}.py"
        module.__file__ = str(path)
        exec(compile(self.sources[module.__name__], str(path), "exec"), module.__dict__)


@contextlib.contextmanager
def importable(sources: Mapping[str, str], folder: Path) -> Generator[None]:
    """Let the files be imported by their names within the context; afterwards they are not."""
    with _lock:
        finder = _Finder(sources, folder)
        before = {name: sys.modules.pop(name) for name in sources if name in sys.modules}
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            for name in sources:
                sys.modules.pop(name, None)
            sys.modules.update(before)


@contextlib.contextmanager
def generators_on_cpu() -> Generator[None]:
    """Make torch's random generators for the CPU, whatever device is asked for, and keep the default device."""
    import torch

    class OnCpu(torch.Generator):
        def __new__(cls, *_: Any, **__: Any) -> "OnCpu":
            return super().__new__(cls)

    plain, device = torch.Generator, torch.get_default_device()
    with _lock:
        torch.Generator = OnCpu  # pyright: ignore[reportAttributeAccessIssue]
        try:
            yield
        finally:
            torch.Generator = plain
            if torch.get_default_device() != device:
                torch.set_default_device(None)


def imported(name: str, sources: Mapping[str, str], path: Path) -> ModuleType:
    """Return one of the files as a module. Raises SetupError, which names `path`, if a file cannot be executed."""
    folder = path.parent
    module = ModuleType(f"{name}_{folder.name.replace('-', '_')}")
    module.__file__ = str(path)
    with importable(sources, folder):
        try:
            exec(compile(sources[name], str(path), "exec"), module.__dict__)
        except SyntaxError as error:
            raise SetupError(f"{path}:{error.lineno}: {error.msg}") from error
        except ImportError as error:
            raise SetupError(f"{path}: {error}") from error
        except (Exception, SystemExit) as error:  # the file is the problem's: its author gets one sentence
            raise SetupError(f"{path}: {type(error).__name__}: {one_line(error)}") from error
    return module
