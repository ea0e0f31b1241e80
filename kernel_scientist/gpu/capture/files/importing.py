"""Imports a file under its own name in its package, whose other modules are imported statement by statement.

The packages around the file are not executed: their `__init__.py` runs only if something of it is asked for. Runs in
untrusted processes: imports the standard library and modules of this package that need no more.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from kernel_scientist.gpu.capture.files.statements import Module, Told

TOOLS = ("ptxas", "cuobjdump", "nvdisasm", "sh")
"""Programs that the compiler of NVIDIA's code starts."""


class Package(ModuleType):
    """A package around the file: executed when an attribute is asked for that is no module of it."""

    def __getattr__(self, name: str) -> Any:
        space = self.__dict__
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        if not name.startswith("__") and importlib.util.find_spec(f"{self.__name__}.{name}") is not None:
            return importlib.import_module(f"{self.__name__}.{name}")
        init = space.pop("_init", None)
        if init is not None:
            Module(str(init), self, space["_roots"], _ignored).execute(init.read_text(errors="replace"))
        if name not in space and "__getattr__" in space:
            return space["__getattr__"](name)
        if name not in space:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return space[name]


class Loader(importlib.abc.Loader):
    """Executes a module of the file's surroundings."""

    def __init__(self, path: Path, lazy: bool, roots: Collection[str]) -> None:
        self.path, self.lazy, self.roots = path, lazy, roots

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Return a package that is executed later, or None for an ordinary module."""
        return Package(spec.name) if self.lazy else None

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, or note what to execute later. Raises SyntaxError."""
        module.__file__ = str(self.path)
        if self.lazy:
            module.__dict__.update(_init=self.path, _roots=self.roots)
        else:
            Module(str(self.path), module, self.roots, _ignored).execute(self.path.read_text(errors="replace"))


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of the file's surroundings."""

    def __init__(self, roots: Mapping[str, str], own: str) -> None:
        self.roots, self.own = {name: Path(path) for name, path in roots.items()}, own

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module in one of the roots."""
        top, *rest = fullname.split(".")
        if top not in self.roots:
            return None
        place = self.roots[top].joinpath(*rest)
        if place.is_dir():
            init = place / "__init__.py"
            if not init.exists():
                return self._spec(fullname, None, place)
            around = f"{self.own}.".startswith(f"{fullname}.")
            return self._spec(fullname, Loader(init, around, self.roots), place)
        file = place if place.suffix == ".py" and not rest else place.with_name(f"{place.name}.py")
        return self._spec(fullname, Loader(file, False, self.roots), None) if file.is_file() else None

    def _spec(self, name: str, loader: Loader | None, folder: Path | None) -> importlib.machinery.ModuleSpec:
        spec = importlib.machinery.ModuleSpec(name, loader, is_package=folder is not None)
        spec.submodule_search_locations = [str(folder)] if folder is not None else None
        return spec


def imported(
    file: Path, name: str, path: str, roots: Mapping[str, str], programs: Mapping[str, str], tell: Told
) -> ModuleType:
    """Import the text of `file` as the module `name`, whose real place is `path`. Raises SyntaxError.

    `programs`: what programs that ask a driver about the device would print.
    """
    if roots:
        sys.meta_path.insert(0, Finder(roots, name))
    _without_programs(programs)
    _with_versions(roots)
    parent = "" if name in roots else name.rpartition(".")[0]
    if parent:
        importlib.import_module(parent)
    module = ModuleType(name)
    module.__file__ = path
    module.__package__ = name if Path(path).name == "__init__.py" else parent
    if Path(path).name == "__init__.py":
        module.__path__ = [str(Path(path).parent)]
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    sys.modules[name] = module
    Module(str(file), module, roots, tell).execute(file.read_text())
    return module


def _with_versions(roots: Collection[str]) -> None:
    """Let the packages around the file have a version, as if they were installed."""
    version = metadata.version

    def told(name: str) -> str:
        try:
            return version(name)
        except metadata.PackageNotFoundError:
            if name.replace("-", "_") in roots:
                return "0"
            raise

    metadata.version = told


def _ignored(line: int, what: str) -> None: ...


def _without_programs(told: Mapping[str, str]) -> None:
    """Let programs fail to start, as if they were not installed; the sandbox would end the process instead.

    `told`: output of programs that ask a driver about the device, by name.
    """
    start: Any = subprocess.Popen.__init__
    run: Any = subprocess.run

    def checked(process: Any, args: Any, *rest: Any, **options: Any) -> None:
        program = _program(args)
        if program not in TOOLS or options.get("shell"):
            raise FileNotFoundError(2, "no programs can be started here", program)
        start(process, args, *rest, **options)

    def answered(args: Any, *rest: Any, **options: Any) -> Any:
        if (output := told.get(_program(args))) is None:
            return run(args, *rest, **options)
        is_text = any(options.get(name) for name in ("text", "universal_newlines", "encoding"))
        return subprocess.CompletedProcess(args, 0, output if is_text else output.encode(), "" if is_text else b"")

    subprocess.Popen.__init__ = checked  # pyright: ignore[reportAttributeAccessIssue]
    subprocess.run = answered  # pyright: ignore[reportAttributeAccessIssue]


def _program(args: Any) -> str:
    first = args.split()[0] if isinstance(args, str) and args.strip() else next(iter(args), "")
    return Path(str(first)).name
