"""What a problem needs that a machine may lack: several GPUs, a GPU with fp4, Python packages. Nothing is executed."""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.syntax import parsed

FP4 = re.compile(r"gfx950|float4_e2m1|fp4x2", re.I)
"""Names of types and GPUs in code that runs with fp4 matrix instructions only; a reference may also compute fp4 by
other operations."""


def of_task(task: Mapping[str, Any], files: Mapping[str, Path], device: str) -> tuple[str, ...]:
    """Return what a task folder needs and this machine lacks, in words. files: its Python files by module name."""
    found = list[str]()
    if task.get("multi_gpu"):
        cases = (*(task.get("tests") or ()), *(task.get("benchmarks") or ()))
        most = max((int(case.get("world_size", 0)) for case in cases), default=0)
        found.append(f"{most or 'several'} GPUs in one machine (multi_gpu), which this evaluator does not use")
    if device == "cpu" and any(FP4.search(word) for path in files.values() for word in _words(path)):
        found.append("a GPU with fp4 matrix instructions (such as MI355X or B200)")
    return (*found, *missing_packages(files))


def missing_packages(files: Mapping[str, Path]) -> tuple[str, ...]:
    """Return the packages that the files import at module level and that are not installed."""
    names = {name for path in files.values() for name in _imported(path)} - set(files)
    return tuple(f"the Python package {name}" for name in sorted(names) if not _installed(name))


def require(name: str, lacking: Sequence[str]) -> None:
    """Raise SetupError if a problem needs what this machine lacks."""
    if lacking:
        raise SetupError(
            f"problem {name} cannot be evaluated here: it needs {', '.join(lacking)}; `kernel-scientist problems show` "
            "describes it, and `kernel-scientist compile FILE --arch gfx942` compiles kernels for it"
        )


def _tree(path: Path) -> ast.Module:
    """Return a file's syntax tree; an empty one if that fails, which is reported when it is executed."""
    try:
        return parsed(path.read_text())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _words(path: Path) -> Iterable[str]:
    """Yield the names and texts in a file's code, without comments and docstrings."""
    nodes = list(ast.walk(_tree(path)))
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.alias(name=word):
                yield word
            case ast.Constant(value=str(word)) if id(node) not in alone:
                yield word
            case _:
                pass


def _imported(path: Path) -> Iterable[str]:
    for node in _tree(path).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
