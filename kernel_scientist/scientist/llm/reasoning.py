"""Reasoning that stands within a reply's text, in tags; it is no part of the answer."""

import re

MOST_TAGS, MOST_ENDS = 100, 10
"""Tags that are looked at, of each name; ends without a start."""
_NAMES = ("think", "thinking", "thought", "reasoning", "seed:think")
_PAIRS = (
    *((rf"<{name}(?:\s[^<>]{{0,80}})?>", rf"</{name}\s?>") for name in _NAMES),
    (r"\[THINK\]", r"\[/THINK\]"),
    ("◁think▷", "◁/think▷"),
    (r"<\|channel\|>analysis<\|message\|>", r"<\|(?:end|return)\|>"),
)
_QUOTED = r"(?<!`)"
"""What does not stand before a tag that is meant: in inline code it is text."""
TAGS = [(re.compile(_QUOTED + start, re.I), re.compile(_QUOTED + end, re.I)) for start, end in _PAIRS]
FINAL, LAST = "<|channel|>final<|message|>", re.compile(r"<\|(?:return|end)\|>\s*$")
"""Marks around the answer, if a server leaves the model's own format as it is."""
_ANSWER = re.compile(
    r"^[ \t>]*(?:(?:def[ ]+custom_kernel|class[ ]+ModelNew)\b|@@|<{7} |\*{3} Begin |(?:`{3,}|~{3,})(?:json|ya?ml))"
    r"|\bsite[=:]|\{\s*(?:[\"']|\w{1,40}\s*:\s*[\"'\[{])",
    re.M,
)
"""A kernel, a change of one, or a record."""


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
            if _fences(before) % 2 or (closing is None and _content(before)):
                begin = opening.end()
            else:
                begin = opening.start()
                reply = before + (reply[closing.end() :] if closing else "")
        for lone in reversed(list(end.finditer(reply))[-MOST_ENDS:]):
            before, after = reply[: lone.start()], reply[lone.end() :]
            if not _fences(before) % 2 and _content(after) >= _content(before):
                reply = after
                break
    return reply


def _fences(text: str) -> int:
    return len(re.findall(r"^[ \t]*(?:`{3,}|~{3,})", text, re.M))


def _content(text: str) -> int:
    """Return how much of an answer a text is: 2 with what a reply is asked for, 1 with a block or a brace, else 0."""
    return 2 if _ANSWER.search(text) else int(_fences(text) > 0 or "{" in text)
