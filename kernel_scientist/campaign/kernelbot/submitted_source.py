"""The source of a kernel as the leaderboard takes it: with its header, and without the word that it refuses."""

import re

from kernel_scientist.records.param_sections import Kernelbot

AS_SUBMISSION = "from reference import ref_kernel\n\n\ndef custom_kernel(data):\n    return ref_kernel(data)\n"
"""The reference as a submission: the leaderboard puts `reference.py` beside it."""
WORD = "stream"
"""The leaderboard answers 500 to a source that contains this word anywhere, in any case."""
MOST_BYTES = 1_000_000
_ARGUMENT = re.compile(r"(<<<[^<>;]*?,[^<>;]*?,[^<>;]*?),\s*[^,<>;]*stream[^,<>;]*(>>>)", re.I)
"""The fourth launch argument: without it a launch goes to the default queue."""
_STATEMENT = re.compile(
    r"^[ \t]*(?:const\s+)?(?:auto|\w*stream_t)\s+\w+\s*=[^;\n]*stream[^;\n]*;[ \t]*\n?", re.I | re.M
)
_INCLUDE = re.compile(r"^[ \t]*#include\s*<[^>\n]*stream[^>\n]*>[ \t]*\n?", re.I | re.M)
_COMMENT = re.compile(r"(//|#(?!\s*(?:include|define|if|endif|pragma))|/\*)[^\n]*", re.I)


def submitted(source: str, board: str, settings: Kernelbot) -> str:
    """Return a kernel's source as it is submitted: with the leaderboard's header, rewritten if that is wanted."""
    if settings.rewrite:
        source = without_word(source) or source
    header = f"#!POPCORN leaderboard {board}\n#!POPCORN gpus {settings.gpu}\n"
    return source if source.startswith("#!POPCORN") else header + source


def lines_with_word(source: str) -> list[int]:
    """Return the numbers of the lines that contain the refused word."""
    return [number for number, line in enumerate(source.splitlines(), start=1) if WORD in line.lower()]


def without_word(source: str) -> str | None:
    """Return a source that launches on the default queue and does not contain the word; None if that takes a person.

    Launch arguments, declarations of the queue, includes and comments are rewritten, nothing else.
    """
    text = _ARGUMENT.sub(r"\1\2", source)
    text = _STATEMENT.sub("", _INCLUDE.sub("", text))
    text = _COMMENT.sub(lambda match: re.sub(WORD, "queue", match[0], flags=re.I), text)
    return None if lines_with_word(text) else text


def refusal(source: str) -> str:
    """Return why the leaderboard would refuse a source; empty if it would not."""
    if numbers := lines_with_word(source):
        where = ", ".join(map(str, numbers[:8]))
        offer = "set kernelbot.rewrite=true to launch on the default queue instead"
        offer = offer if without_word(source) is not None else "launch on the default queue and use another word"
        return f"the leaderboard refuses sources with the word `{WORD}`, comments included (line {where}): {offer}"
    if len(source.encode()) > MOST_BYTES:
        return f"the leaderboard refuses files over {MOST_BYTES:,} bytes"
    return ""
