"""Reasoning that stands within a reply's text, in tags; it is no part of the answer."""

import re

MOST_TAGS = 100
"""Tags that are looked at, of each name."""
_NAMES = ("think", "thinking", "thought", "reasoning", "seed:think")
_PAIRS = (
    *((rf"<{name}(?:\s[^<>]{{0,80}})?>", rf"</{name}\s?>") for name in _NAMES),
    (r"\[THINK\]", r"\[/THINK\]"),
    ("◁think▷", "◁/think▷"),
    (r"<\|channel\|>analysis<\|message\|>", r"<\|(?:end|return)\|>"),
)
TAGS = [(re.compile(start, re.I), re.compile(end, re.I)) for start, end in _PAIRS]
FINAL, LAST = "<|channel|>final<|message|>", re.compile(r"<\|(?:return|end)\|>\s*$")
"""Marks around the answer, if a server leaves the model's own format as it is."""


def without_reasoning(reply: str) -> str:
    """Return a reply without `<think> ... </think>`, also without its start or its end. A tag in an answer is text."""
    if FINAL in reply:
        reply = LAST.sub("", reply.rpartition(FINAL)[2])
    for start, end in TAGS:
        begin = 0
        for _ in range(MOST_TAGS):
            if (opening := start.search(reply, begin)) is None:
                break
            closing, before = end.search(reply, opening.end()), reply[: opening.start()]
            if _fences(before) % 2 or (closing is None and _answers(before)):
                begin = opening.end()
            else:
                begin = opening.start()
                reply = before + (reply[closing.end() :] if closing else "")
        lone = next(reversed(list(end.finditer(reply))), None)
        if lone is not None:
            before, after = reply[: lone.start()], reply[lone.end() :]
            if not _fences(before) % 2 and (_answers(after) or not _answers(before)):
                reply = after
    return reply


def _fences(text: str) -> int:
    return len(re.findall(r"^[ \t]*(?:`{3,}|~{3,})", text, re.M))


def _answers(text: str) -> bool:
    """Return whether a text has what a reply is asked for: a block or a record."""
    return _fences(text) > 0 or "{" in text
