"""The texts that a submission gives to an extension, and where a line of one stands in its file.

Runs in the untrusted process: standard library only.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_scientist.compilers.request import ExtensionRequest
from kernel_scientist.gpu.toolchains.quoted_sources import SUBMISSION, Sources
from kernel_scientist.gpu.toolchains.sources import text_name

_LAUNCH = re.compile(r"\b(\w+)\s*(?:<[^;{}()]*?>\s*)?<<<|\bhip(?:Ext)?LaunchKernelGGL\s*\(\s*\(?\s*(\w+)")


@dataclass(frozen=True)
class Text:
    """One of an extension's sources."""

    name: str
    """What the compiler calls it."""
    content: str
    file: str = ""
    """The submission's file; empty where it is not known."""


def texts(request: ExtensionRequest, file: str = "") -> list[Text]:
    """Return an extension's sources: those for the host, then those for host and device."""
    sources = ((f"{request.name}.cpp", request.cpp_sources), (request.name, request.cuda_sources))
    return [Text(text_name(name, n), text, file) for name, given in sources for n, text in enumerate(given)]


def mention(name: str, given: Sequence[Text]) -> str:
    """Return where the texts mention a function first, as ` (kernel.py, line 12)`; empty if they do not."""
    cudas = re.compile(rf"\b(?:{name}|{re.sub('^hip', 'cuda', name)})\b")  # torch translates CUDA's names
    for number, text in enumerate(given):
        for line, content in enumerate(text.content.splitlines(), 1):
            if cudas.search(content):
                return _told(given, number, line)
    return ""


def launch(place: tuple[str, int], reason: str, given: Sequence[Text]) -> str:
    """Return where a launch stands, as `mention` does; empty if it is not in these texts.

    place: its file and line by the compiler. reason: what is said about it, with the kernel's name.
    """
    name, line = place
    found = [number for number, text in enumerate(given) if text.name == name]
    return _told(given, found[0], _within(given[found[0]].content.splitlines(), line, reason)) if found else ""


def _told(given: Sequence[Text], number: int, line: int) -> str:
    """Return a place in the submission's file, or in a text that does not stand in it as it is."""
    text = given[number]
    if text.content and text.content in text.file:
        sources = Sources()
        sources.add(text.name, text.content, text.file)
        return f" ({SUBMISSION}, line {sources.quoted(text.name, line)[0]})"
    return f" (line {line})" if len(given) == 1 else f" (source {number}, line {line})"


def _within(lines: list[str], line: int, reason: str) -> int:
    """Return the line of a launch.

    Of one inside a macro's parentheses (`AT_DISPATCH_FLOATING_TYPES`, `hipLaunchKernelGGL`) the compiler names the line
    that closes them: it is the last one in there that starts the kernel which the reason names, else the last one.
    """
    first = _opening(lines, line)
    text = "\n".join(lines[first - 1 : line])
    inside = [(first + text.count("\n", 0, one.start()), one[1] or one[2]) for one in _LAUNCH.finditer(text)]
    named = [number for number, kernel in inside if kernel in reason]
    return (named or [number for number, _ in inside] or [line])[-1]


def _opening(lines: list[str], line: int) -> int:
    """Return the line in which the parentheses open that a line closes: itself if it opens them all."""
    depth = 0
    for number in range(min(line, len(lines)), 0, -1):
        for sign in reversed(lines[number - 1]):
            depth = max(0, depth + (sign == ")") - (sign == "("))
        if depth == 0:
            return number
    return line
