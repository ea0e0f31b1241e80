"""What a worker says, read with suspicion: every field is checked before anything is made of it."""

import signal

from kernel_scientist.harness import wire
from kernel_scientist.harness.failure import KernelFailure
from kernel_scientist.harness.shim import Reading
from kernel_scientist.languages.cpp import BuildRequest
from kernel_scientist.records import Verdict

MOST_SOURCE, MOST_ARGUMENTS = 4 << 20, 1 << 16
"""Bytes of one build's source, and of its defines and flags together."""
REASON = 500
"""Characters of a worker's words that go into a reason."""
LARGEST = 1 << 62
"""No integer of a worker's may be larger."""


def build_request(reply: wire.Header) -> BuildRequest:
    """Return the build that a worker asks for. Raises KernelFailure for what is none, or is too long to be one."""
    match reply.get("request"):
        case {"source": str(source), "defines": dict(defines), "flags": list(flags)}:
            request = BuildRequest(source, {str(k): str(v) for k, v in defines.items()}, [str(f) for f in flags])
        case _:
            raise KernelFailure(Verdict.REJECTED, "its worker broke the protocol: no build request")
    arguments = "".join([*request.defines, *request.defines.values(), *request.flags])
    if "\0" in source + arguments or printable(source + arguments) != source + arguments:
        raise KernelFailure(Verdict.COMPILE_ERROR, "its C++ source or flags hold characters that are none")
    if len(source) > MOST_SOURCE or len(arguments) > MOST_ARGUMENTS:
        raise KernelFailure(Verdict.COMPILE_ERROR, "its C++ source or flags are too long")
    return request


def printable(value: object) -> str:
    """Return a worker's words without what cannot be written (half characters)."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def signal_name(number: int) -> str:
    """Return a signal's name; real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def readings(reply: wire.Header, count: int) -> tuple[Reading, ...]:
    """Return what a worker's clocks said of `count` calls. Raises KernelFailure for what is no reading."""
    match reply.get("readings"):
        case list(rows) if len(rows) == count and all(
            isinstance(row, list)
            and len(row) == len(Reading._fields)
            and all(type(n) is int and 0 <= n <= LARGEST for n in row)
            for row in rows
        ):
            return tuple(Reading(*row) for row in rows)
        case _:
            raise KernelFailure(Verdict.REJECTED, "its worker broke the protocol: no readings of its clocks")
