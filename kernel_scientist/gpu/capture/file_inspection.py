"""Finds out what the kernels of a file compile to, as it lies in its package, by a confined process.

The file may import its own package and modules beside it, besides installed packages. Trusted side: reads the file's
imports and the names of files around it; executes nothing. If a kernel ends the compiler's process, the file is
inspected again, with smaller tiles for that kernel; if it does so again, without that kernel.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kernel_scientist.gpu.capture.inspect import CompilerEndedError, Inspection, asked
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure

MOST_GAPS = 3
"""Folders without `__init__.py` between two folders of one package."""
LEVELS = 4
"""Folders above the file in which a module that it imports is looked for."""
NEVER = frozenset(sys.stdlib_module_names | {"torch", "triton", "numpy", "kernel_scientist", "task"})
RESTARTS = 6
"""How often the kernels of a file may end the compiler."""


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


def seen_file(
    source: str,
    place: Surroundings,
    gpu: Gpu,
    timeout_s: float,
    entry: str | None = None,
    inputs: Mapping[str, protocol.Header] | None = None,
) -> Inspection:
    """Import a file as it lies in its package, call its entry, and compile its other kernels with invented arguments.

    `inputs`: the entry's arguments by name; by default those of the file's `get_inputs`. Raises like `inspect.inspect`.
    """
    file = {"path": place.path, "module": place.module, "roots": place.roots}
    ended: dict[str, int] = {}
    told: list[str] = []
    while True:
        small, skip = [name for name, times in ended.items() if times == 1], [n for n, t in ended.items() if t > 1]
        what = {"file": file, "entry": entry, "inputs": inputs, "small": small, "skip": skip, "counts": False}
        try:
            found = asked(source, gpu, timeout_s, what, place.readable)
        except CompilerEndedError as end:
            if sum(ended.values()) == RESTARTS:
                raise KernelFailure(Verdict.CRASHED, f"its inspection ended: {end}", tuple(told)) from end
            ended[end.kernel] = ended.get(end.kernel, 0) + 1
            told += [str(end)] if ended[end.kernel] > 1 else []
            continue
        return replace(found, report=found.report.model_copy(update={"missed": (*found.report.missed, *told)}))
