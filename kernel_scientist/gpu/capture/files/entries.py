"""Finds a file's entry function by reading it: the function that is called with the inputs.

Trusted side: executes nothing.
"""

import ast

from kernel_scientist.compile.source import defined_names, statements
from kernel_scientist.gpu.capture.files.surroundings import tree
from kernel_scientist.records.errors import SetupError

NAMED = ("custom_kernel", "ModelNew", "Model", "forward")
"""Entries that are recognised by their names, in this order."""


def entry(text: str, file: str, named: str | None, needed: bool) -> str | None:
    """Return the name of a file's entry; None if it has none, or if the file is no Python.

    `named`: the name that the user gives. `needed`: whether there are inputs, so that an entry must be found. Raises
    SetupError if the named one is not in the file, or if several functions launch kernels.
    """
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return named
    defined = defined_names(module)
    if named is not None:
        if named.split(".")[0] not in defined:
            raise SetupError(f"{file} defines no {named}; it defines {', '.join(sorted(defined)) or 'nothing'}")
        return named
    candidates = launching(module)
    for name in NAMED:
        if name in defined and (name != "forward" or name in candidates):
            return name
    if len(candidates) == 1:
        return candidates[0]
    if not needed:
        return None
    if candidates:
        raise SetupError(
            f"{len(candidates)} functions of {file} launch a kernel: name one by --entry: {', '.join(candidates)}"
        )
    raise SetupError(f"no public function of {file} launches a kernel: name the one to call by --entry")


def own_inputs(text: str) -> bool:
    """Whether a file defines `get_inputs`."""
    return "get_inputs" in defined_names(tree(text))


def functions(text: str) -> list[str]:
    """Return `kernel.py, line N: NAME` for each function of a file that is written in Triton."""
    nodes = ast.walk(tree(text))
    return [f"kernel.py, line {n.lineno}: {n.name}" for n in nodes if isinstance(n, ast.FunctionDef) and _jitted(n)]


def launching(module: ast.Module) -> list[str]:
    """Return the public functions of a module that launch a kernel themselves (`kernel[grid](...)`)."""
    kernels = {node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and _jitted(node)}
    kernels |= {
        alias.asname or alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return [
        node.name
        for node in sorted(statements(module), key=lambda node: getattr(node, "lineno", 0))
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not _jitted(node)
        if any(_launches(inner, kernels) for inner in ast.walk(node))
    ]


def _launches(node: ast.AST, kernels: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Subscript(value=ast.Name(id=name))):
            return name in kernels
        case _:
            return False


def _jitted(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(one).partition("(")[0].rpartition(".")[2] == "jit" for one in node.decorator_list)
