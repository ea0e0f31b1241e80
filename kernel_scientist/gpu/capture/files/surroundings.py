"""Finds what a kernel's file may import besides installed packages: its own package, and modules beside it.

Trusted side. Reads the file's imports and the names of files around it; executes nothing.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MOST_GAPS = 3
"""Folders without `__init__.py` between two folders of one package."""
LEVELS = 4
"""Folders above the file in which a module that it imports is looked for."""
NEVER = frozenset(sys.stdlib_module_names | {"torch", "triton", "numpy", "kernel_scientist", "task"})


@dataclass(frozen=True)
class Surroundings:
    """A file's place among the modules around it."""

    path: str
    module: str
    """Its dotted name; `kernel` if it lies in no package."""
    roots: dict[str, str]
    """Paths of the packages and modules that it may import, by top-level name."""

    @property
    def readable(self) -> tuple[str, ...]:
        """Return the files and folders that the inspecting process must be able to read."""
        return tuple(dict.fromkeys(self.roots.values()))


def around(path: Path, text: str) -> Surroundings:
    """Return the surroundings of a file with this text."""
    path = path.resolve()
    wanted = imported(text)
    top = _package(path, wanted, _level(text))
    roots = {top.name: str(top)} if top is not None else {}
    waiting = [(path.parent, name) for name in sorted(wanted)]
    while waiting:
        folder, name = waiting.pop()
        place = None if name in roots or name in NEVER else _beside(folder, name)
        if place is None:
            continue
        roots[name] = str(place)
        if place.suffix == ".py":
            waiting += [(place.parent, other) for other in sorted(imported(place.read_text(errors="replace")))]
    if top is None:
        return Surroundings(str(path), "kernel", roots)
    parts = path.relative_to(top.parent).with_suffix("").parts
    return Surroundings(str(path), ".".join(parts[:-1] if parts[-1] == "__init__" else parts), roots)


def imported(text: str) -> set[str]:
    """Return the top-level names of a file's absolute imports."""
    return {name.split(".")[0] for name in _names(tree(text))}


def tree(text: str) -> ast.Module:
    """Return a file's syntax tree; an empty one if it cannot be parsed."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _level(text: str) -> int:
    """Return how many folders above itself a file's relative imports begin; 0 without any."""
    return max((node.level for node in ast.walk(tree(text)) if isinstance(node, ast.ImportFrom)), default=0)


def _package(path: Path, wanted: set[str], level: int) -> Path | None:
    """Return the folder of the outermost package around a file.

    A package is a folder with `__init__.py`, or one that the file's imports name.
    """
    found, gaps = None, 0
    for folder in path.parents:
        if not folder.name.isidentifier() or gaps > MOST_GAPS:
            break
        named = folder.name in wanted and folder.name not in NEVER
        if found is not None and found.name in wanted and not (folder / "__init__.py").exists():
            break  # a repository may have its package's name
        if (folder / "__init__.py").exists() or named:
            found, gaps = folder, 0
        else:
            gaps += 1
    above = list(path.parents)[:level][-1:]  # what the file's relative imports reach
    return above[0] if above and (found is None or found.is_relative_to(above[0])) else found


def _beside(folder: Path, name: str) -> Path | None:
    """Return a module of this name in the folder or in one of those above."""
    for place in (folder, *folder.parents)[:LEVELS]:
        if (place / f"{name}.py").is_file():
            return place / f"{name}.py"
        if (place / name).is_dir() and any((place / name).glob("*.py")):
            return place / name
    return None
