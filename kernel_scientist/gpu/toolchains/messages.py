"""The first error among a C++ compiler's messages, in one line that names the submission's own line.

An error in a header (a static assertion, a template that does not fit) is the fault of the line that asked for it,
which the compiler names in notes behind the error.
"""

import re
from collections.abc import Sequence

from kernel_scientist.gpu.toolchains.quoted_sources import Sources
from kernel_scientist.gpu.toolchains.sources import text_name

ERRORS = 40
"""Lines behind an error in which the line that asked for it is looked for."""
_ERROR = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+)(?::\d+)?: (?:fatal )?error: (?P<words>.*)$", re.MULTILINE)
_NOTE = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+)(?::\d+)?: note: ", re.MULTILINE)


def summary(log: str, name: str, texts: Sequence[str], whole: str) -> str:
    """Return the first error and its line in the submission's file; empty if the messages have none.

    name, texts: of the extension that was compiled. whole: the submission's file.
    """
    error = _ERROR.search(log)
    if error is None:
        return ""
    sources, own = Sources(), [text_name(name, number) for number in range(len(texts))]
    for text, called in zip(texts, own, strict=True):
        sources.add(called, text, whole)
    following = "\n".join(log[error.end() :].splitlines()[:ERRORS])
    places = [error, *_NOTE.finditer(following.split(": error: ")[0])]
    place = next((one for one in places if one["file"] in own), None)
    if place is None:
        return f"{error['file']}, line {error['line']}: {error['words']}"
    line, quoted = sources.quoted(place["file"], int(place["line"]))
    where = "kernel.py" if texts[own.index(place["file"])] in whole else place["file"]
    return f"{where}, line {line}: {error['words']}" + (f": {quoted}" if place is not error else "")
