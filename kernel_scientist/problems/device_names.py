"""Python files written for a GPU, changed to run on another device. Lines keep their numbers."""

import io
import re
import tokenize

CUDA = re.compile(r"""^(?P<quote>['"])cuda(:\d+)?(?P=quote)$""")
NOTHING = ("synchronize", "empty_cache", "manual_seed", "manual_seed_all", "reset_peak_memory_stats")
"""Functions of `torch.cuda` that need no replacement where there is no GPU."""
Edit = tuple[int, int, int, str]
"""Line, first and last + 1 column, replacement."""


def on_device(text: str, device: str) -> str:
    """Return a file with `"cuda"`, `.cuda()` and `torch.cuda.synchronize` replaced for a device such as `cpu`.

    A file that cannot be read as Python is returned as it is.
    """
    if device.startswith("cuda") or "cuda" not in text:
        return text
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return text
    lines = io.StringIO(text).readlines()  # unlike splitlines it does not split at form feeds
    for line, start, end, new in reversed(_edits(tokens, device)):
        lines[line - 1] = lines[line - 1][:start] + new + lines[line - 1][end:]
    return "".join(lines)


def _edits(tokens: list[tokenize.TokenInfo], device: str) -> list[Edit]:
    found: list[Edit] = []
    for place, token in enumerate(tokens):
        if token.type == tokenize.STRING and CUDA.match(token.string):
            found.append(_edit(token, token, f'"{device}"'))
        elif token.type == tokenize.NAME and token.string == "cuda":
            words = [t.string for t in tokens[place - 2 : place + 4]]
            if words[1:2] == ["."] and words[3:5] == ["(", ")"] and words[0] != "torch":  # x.cuda()
                found.append(_edit(token, tokens[place + 2], f'to("{device}")'))
            elif words[:2] == ["torch", "."] and words[3:4] == ["."] and words[4] in NOTHING:  # torch.cuda.synchronize
                found.append(_edit(tokens[place - 2], tokens[place + 2], "(lambda *_, **__: None)"))
    return [edit for edit in found if edit[0] > 0]


def _edit(first: tokenize.TokenInfo, last: tokenize.TokenInfo, new: str) -> Edit:
    """Return the replacement of some tokens; line 0 if they do not stand on one line."""
    line = first.start[0] if first.start[0] == last.end[0] else 0
    return line, first.start[1], last.end[1], new
