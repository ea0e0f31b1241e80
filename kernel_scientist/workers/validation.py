"""Checks of what a worker sends: every field, before it is used."""

from typing import Any

from kernel_scientist.compile.extension import NAME, ExtensionRequest, Request
from kernel_scientist.compile.request import MOST_ARGUMENTS, MOST_SOURCE, BuildRequest
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure, printable
from kernel_scientist.workers.native import Reading

REASON = 500
"""Characters of a worker's words that go into a reason."""
COMPILE_ERRORS = ("CompileError", "CompilationError", "SyntaxError", "IndentationError", "TabError")
LARGEST = 1 << 62
"""No integer of a worker's may be larger."""


def unexpected(reply: protocol.Header, op: str, when: str) -> KernelFailure:
    """Return how a kernel has failed whose worker answered something else than `op`."""
    said, name, message = (printable(reply.get(key))[:REASON] for key in ("op", "error", "message"))
    if said != "failed":
        return KernelFailure(Verdict.REJECTED, f"its worker broke the protocol: {said!r} instead of {op!r}")
    verdict = Verdict.COMPILE_ERROR if name in COMPILE_ERRORS else Verdict.CRASHED
    return KernelFailure(verdict, f"{name} {when}: {message}", (printable(reply.get("traceback", "")),))


def build_request(reply: protocol.Header) -> Request:
    """Return the build that a worker asks for. Raises KernelFailure for what is none, or is too long to be one."""
    match reply.get("request"):
        case {"source": str(source), "defines": dict(defines), "flags": list(flags)}:
            request = BuildRequest(source, _named(defines), _texts(flags))
            arguments = [*request.defines, *request.defines.values(), *request.flags]
        case {"name": str(name), "cpp_sources": list(sources), "cuda_sources": list(device), **rest}:
            request = _extension(name, _texts(sources), _texts(device), rest)
            source = "".join((*request.cpp_sources, *request.cuda_sources))
            arguments = [*request.cflags, *request.cuda_cflags, *request.ldflags, *request.include_paths]
            arguments += [text for pair in (request.functions or {}).items() for text in pair]
        case _:
            raise KernelFailure(Verdict.REJECTED, "its worker broke the protocol: no build request")
    _require_text(source, "".join(arguments))
    return request


def _extension(name: str, sources: list[str], device: list[str], rest: dict[str, Any]) -> ExtensionRequest:
    functions = rest.get("functions")
    bound = _named(functions) if isinstance(functions, dict) else None
    with_cuda, handling, headers = (rest.get(key) is True for key in ("with_cuda", "error_handling", "headers"))
    match rest:
        case {"cflags": list(cc), "cuda_cflags": list(nvcc), "ldflags": list(ld), "include_paths": list(paths)}:
            flags = _texts(cc), _texts(nvcc), _texts(ld), _texts(paths)
        case _:
            flags = None
    if flags is None or not NAME.fullmatch(name):
        raise KernelFailure(Verdict.REJECTED, "its worker broke the protocol: no build request")
    return ExtensionRequest(name, sources, device, bound, *flags, with_cuda, handling, headers)


def _require_text(source: str, arguments: str) -> None:
    if "\0" in source + arguments or printable(source + arguments) != source + arguments:
        raise KernelFailure(Verdict.COMPILE_ERROR, "its C++ source or flags hold characters that are none")
    if len(source) > MOST_SOURCE or len(arguments) > MOST_ARGUMENTS:
        raise KernelFailure(Verdict.COMPILE_ERROR, "its C++ source or flags are too long")


def _texts(values: list[Any]) -> list[str]:
    return [str(value) for value in values]


def _named(values: dict[Any, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in values.items()}


def reading(reply: protocol.Header) -> Reading:
    """Return what a worker's clocks measured of a row. Raises KernelFailure for anything else."""
    match reply.get("reading"):
        case list(row) if len(row) == len(Reading._fields) and all(type(n) is int and 0 <= n <= LARGEST for n in row):
            return Reading(*row)
        case _:
            raise KernelFailure(Verdict.REJECTED, "its worker broke the protocol: no reading of its clocks")


def output_trees(reply: protocol.Header, count: int) -> list[protocol.Header]:
    """Return the descriptions of `count` outputs. Raises KernelFailure for anything else."""
    match reply.get("outputs"):
        case list(trees) if len(trees) == count and all(isinstance(tree, dict) for tree in trees):
            return trees
        case _:
            raise KernelFailure(Verdict.REJECTED, "its worker broke the protocol: an output without a description")


def leaves(tree: Any) -> list[protocol.Header]:
    """Return the tensors of a description, in order."""
    if not isinstance(tree, dict):
        return []
    node: protocol.Header = tree
    if node.get("kind") == "tensor":
        return [node]
    items: Any = node.get("items", [])
    items = list(items.values()) if isinstance(items, dict) else items
    return [leaf for item in items for leaf in leaves(item)] if isinstance(items, list) else []
