"""Finds a file's entry function by reading it: the function that is called with the inputs; and reads the inputs.

The text of `--inputs`, such as `x:fp16[4096,4096],n:int=4096`, is read as descriptions of a function's arguments, of
which `large_tensors.made` makes the arguments. Trusted side: executes nothing.
"""

import ast
import re
from collections.abc import Iterator
from math import prod
from typing import Any

from kernel_scientist.compilers.source import defined_names, statements
from kernel_scientist.gpu.capture.file_inspection import tree
from kernel_scientist.records.errors import SetupError
from kernel_scientist.sandbox import protocol

NAMED = ("custom_kernel", "ModelNew", "Model", "forward")
"""Entries that are recognised by their names, in this order."""
GRAMMAR = (
    "--inputs is a list of NAME:TYPE[SIZE,...] for tensors (x:fp16[64,128], or with strides x:fp16[64,128][1,64]), "
    "NAME:int=N, NAME:float=X, NAME:bool=true or false, NAME:str=TEXT, NAME:dtype=TYPE and "
    "NAME:none, separated by commas"
)
TYPES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "half": "float16", "float": "float32",
    "fp8": "float8_e4m3fnuz", "fp8e4m3": "float8_e4m3fn", "fp8e4m3fnuz": "float8_e4m3fnuz", "fp8e5m2": "float8_e5m2",
    "fp8e5m2fnuz": "float8_e5m2fnuz", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8",
    "bool": "bool",
    **{name: name for name in ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8")},
    **{name: name for name in ("uint8", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")},
}  # fmt: skip
"""Names of types, and torch's names for them."""
MOST = 1 << 40
"""Most elements of a tensor."""
_ITEM = re.compile(
    r"\s*(?P<name>[A-Za-z_]\w*)\s*:\s*(?P<type>\w+)\s*(?P<shape>\[[\d,\s]*\])?\s*(?P<stride>\[[\d,\s]*\])?"
    r"\s*(?:=\s*(?P<value>[^,]*))?\s*(?:,|$)"
)


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


def headers(text: str) -> dict[str, protocol.Header]:
    """Return the arguments by name. Raises SetupError, with the grammar, for a text that is none."""
    found: dict[str, protocol.Header] = {}
    for item in _items(text):
        name = item["name"]
        if name in found:
            raise SetupError(f"--inputs names {name} twice")
        found[name] = _tensor(item) if item["shape"] is not None else _plain(item)
    return found


def _items(text: str) -> Iterator[re.Match[str]]:
    place = 0
    while place < len(text):
        item = _ITEM.match(text, place)
        if item is None or item.end() == place:
            raise SetupError(f"--inputs cannot be read at {text[place : place + 40]!r}: {GRAMMAR}")
        yield item
        place = item.end()
    if not text.strip():
        raise SetupError(f"--inputs is empty: {GRAMMAR}")


def _tensor(item: re.Match[str]) -> protocol.Header:
    kind, shape = TYPES.get(item["type"]), _numbers(item["shape"])
    if kind is None or item["value"] is not None:
        what = "a tensor has no value" if kind else f"unknown type {item['type']!r}"
        raise SetupError(f"--inputs, {item['name']}: {what}; types: {', '.join(TYPES)}")
    stride = _numbers(item["stride"]) if item["stride"] else [prod(shape[i + 1 :]) for i in range(len(shape))]
    if len(stride) != len(shape) or prod(shape) > MOST:
        raise SetupError(f"--inputs, {item['name']}: the shape and the strides do not fit, or it is too large")
    return {"kind": "tensor", "dtype": kind, "shape": shape, "stride": stride}


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.strip("[]").split(",") if part.strip()]


def _plain(item: re.Match[str]) -> protocol.Header:
    name, kind, value = item["name"], item["type"], (item["value"] or "").strip()
    try:
        return {"kind": "dtype" if kind == "dtype" else "value", "value": _value(kind, value)}
    except (ValueError, KeyError) as error:
        raise SetupError(f"--inputs, {name}: {kind} with value {value!r} cannot be read: {GRAMMAR}") from error


def _value(kind: str, text: str) -> Any:
    match kind:
        case "int" | "i32" | "i64":
            return int(text)
        case "float" | "fp32" | "fp64":
            return float(text)
        case "bool":
            return {"true": True, "false": False, "1": True, "0": False}[text.lower()]
        case "str":
            return text
        case "dtype":
            return TYPES[text]
        case "none" | "None":
            return None
        case _:
            raise ValueError(kind)
