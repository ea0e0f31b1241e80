"""Validation of a worker's messages: every field is checked before it is used."""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from kernel_scientist.compilers.request import MOST_ARGUMENTS, MOST_SOURCE, NAME, ExtensionRequest, Request
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure, printable
from kernel_scientist.workers.native import Reading

REASON = 500
"""Most characters of a worker's message that are quoted in a reason."""
COMPILE_ERRORS = ("CompileError", "CompilationError", "SyntaxError", "IndentationError", "TabError")
NOT_SIMULATED = "NotSimulatedError"
"""Name of the error for what the machine that executes a GPU's code cannot do (`gpu.machine.launch`). A kernel that
raises one of this name is not `ok` either."""
REFUSED = "; the sandbox refuses whatever reaches beyond a kernel's own process and files"
LARGEST = 1 << 62
"""Largest integer that is accepted from a worker."""
SOURCES = ("source", "cpp_sources", "cuda_sources")
_REQUEST: TypeAdapter[Request] = TypeAdapter(Request)


def protocol_violation(what: str) -> KernelFailure:
    """Return the failure for a worker that violates the protocol."""
    return KernelFailure(Verdict.REJECTED, f"its worker broke the protocol: {what}")


def unexpected(reply: protocol.Header, op: str, doing: str) -> KernelFailure:
    """Return the failure for a worker whose answer is not `op`."""
    answer, name, message = (printable(reply.get(key))[:REASON] for key in ("op", "error", "message"))
    if answer != "failed":
        return protocol_violation(f"{answer!r} instead of {op!r}")
    if name == NOT_SIMULATED:
        return KernelFailure(Verdict.COMPILED, f"not executed in {doing}: {message}")
    trace = (printable(reply.get("traceback", "")),)
    if reply.get("own") is True:
        reason = f"not the kernel's fault: {name} in the evaluator's own code in {doing}: {message}; please report it"
        return KernelFailure(Verdict.INFRASTRUCTURE, reason, trace)
    verdict = Verdict.COMPILE_ERROR if name in COMPILE_ERRORS else Verdict.CRASHED
    why = REFUSED if name == PermissionError.__name__ else ""
    return KernelFailure(verdict, f"{name} in {doing}: {message}{why}", trace)


def build_request(reply: protocol.Header) -> Request:
    """Return a worker's build request. Raises KernelFailure if it is invalid or too long."""
    try:
        request: Request = _REQUEST.validate_python(reply.get("request"), strict=True)
    except ValidationError as error:
        raise protocol_violation("no build request") from error
    if isinstance(request, ExtensionRequest) and not NAME.fullmatch(request.name):
        raise protocol_violation("no build request")
    source = sum(map(len, _texts([getattr(request, name, "") for name in SOURCES])))
    texts = _texts(list(request))
    if any("\0" in text or printable(text) != text for text in texts):
        raise KernelFailure(Verdict.COMPILE_ERROR, "its C++ source or flags contain invalid characters")
    if source > MOST_SOURCE or sum(map(len, texts)) - source > MOST_ARGUMENTS:
        raise KernelFailure(Verdict.COMPILE_ERROR, "its C++ source or flags are too long")
    return request


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


def reading(reply: protocol.Header) -> Reading:
    """Return the readings of a worker's clocks for a row. Raises KernelFailure if they are invalid."""
    match reply.get("reading"):
        case list(row) if len(row) == len(Reading._fields) and all(type(n) is int and 0 <= n <= LARGEST for n in row):
            return Reading(*row)
        case _:
            raise protocol_violation("no reading of its clocks")


def output_trees(reply: protocol.Header, count: int) -> list[protocol.Header]:
    """Return the descriptions of `count` outputs. Raises KernelFailure if they are invalid."""
    match reply.get("outputs"):
        case list(trees) if len(trees) == count and all(isinstance(tree, dict) for tree in trees):
            return trees
        case _:
            raise protocol_violation("an output without a description")


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
