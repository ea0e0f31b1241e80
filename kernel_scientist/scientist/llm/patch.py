"""A writer's change of a base: a whole file, marked sites, search-and-replace pairs or a unified diff.

A diff is applied by its content, not by its line numbers, which models get wrong: the lines that it keeps or removes
must stand in the base exactly once.
"""

import re
from collections.abc import Sequence

from kernel_scientist.compile.source import KernelSource, SourceError
from kernel_scientist.scientist.llm.parsing import Answer, Block, ReplyError

CODE = ("python", "py", "triton", "")
SEARCH, MIDDLE, REPLACE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
MOST_SOURCE = 400_000
"""Characters of a kernel's file."""


class PatchError(ReplyError):
    """A change does not fit the base; a whole file would."""


def kernel_from(answer: Answer, base: str) -> str:
    """Return the complete source that a reply gives. Raises ReplyError, PatchError when only its diff is at fault."""
    if cut := [b for b in answer.blocks if not b.closed]:
        raise ReplyError(f"the reply ends within a block of {len(cut[-1].text)} characters: it was cut off")
    sites = [b for b in answer.blocks if _site(b)]
    edits = [b for b in answer.blocks if SEARCH in b.text and REPLACE in b.text]
    diffs = [b for b in answer.blocks if b.language in ("diff", "patch")]
    whole = [b for b in answer.blocks if b.language in CODE and b not in sites and SEARCH not in b.text]
    if any("custom_kernel" in b.text for b in whole):
        source = max((b.text for b in whole if "custom_kernel" in b.text), key=len)
    elif sites or edits or diffs:
        source = _changed(base, sites, edits, diffs)
        if source == base:
            raise PatchError("the change leaves the base as it is")
    else:
        found = f"{len(answer.blocks)} fenced blocks, none with custom_kernel" if answer.blocks else "no fenced block"
        raise ReplyError(f"the reply holds no kernel: {found}")
    if len(source) > MOST_SOURCE:
        raise ReplyError(f"a kernel of {len(source)} characters; at most {MOST_SOURCE} are read")
    return source


def _changed(base: str, sites: Sequence[Block], edits: Sequence[Block], diffs: Sequence[Block]) -> str:
    for block in sites:
        try:
            base = KernelSource(base).with_site(_site(block), block.text).text
        except SourceError as error:
            raise PatchError(str(error)) from error
    for block in edits:
        base = _replaced(base, block.text)
    for block in diffs:
        if block not in edits:
            base = _patched(base, block.text)
    return base


def _site(block: Block) -> str:
    match = re.search(r"\bsite[=:][ ]?([\w.-]+)", block.info)
    return match[1] if match else ""


def _replaced(base: str, text: str) -> str:
    """Carry out `SEARCH ... ======= ... REPLACE` pairs."""
    for number, part in enumerate(text.split(SEARCH + "\n")[1:], start=1):
        body, closed, _ = part.partition("\n" + REPLACE)
        before, split, after = body.partition("\n" + MIDDLE)
        if not closed or not split:
            raise PatchError(f"pair {number} is not SEARCH, =======, REPLACE, each on a line of its own")
        base = _swap(base, before.splitlines(), after.removeprefix("\n").splitlines(), f"pair {number}")
    return base


def _patched(base: str, text: str) -> str:
    """Apply a unified diff's hunks by content."""
    hunks: list[tuple[list[str], list[str]]] = []
    for line in text.splitlines():
        if line.startswith("@@"):
            hunks.append(([], []))
        elif not hunks or line.startswith(("\\", "diff ", "index ")):
            continue
        elif line.startswith("-"):
            hunks[-1][0].append(line[1:])
        elif line.startswith("+"):
            hunks[-1][1].append(line[1:])
        else:  # context; models drop the blank of an empty line
            for side in hunks[-1]:
                side.append(line[1:] if line.startswith(" ") else line)
    if not hunks:
        raise PatchError("the diff has no hunk (a line that begins with @@)")
    for number, (before, after) in enumerate(hunks, start=1):
        base = _swap(base, before, after, f"hunk {number}")
    return base


def _swap(base: str, before: list[str], after: list[str], what: str) -> str:
    """Replace lines that stand in the base once; blanks at line ends do not count."""
    lines, wanted = base.split("\n"), [line.rstrip() for line in before]
    if not any(wanted):
        raise PatchError(f"{what} says nothing of where it belongs")
    bare = [line.rstrip() for line in lines]
    first, count = wanted[0], len(wanted)
    places = [i for i, line in enumerate(bare) if line == first and bare[i : i + count] == wanted]
    if len(places) != 1:
        shown = next((line for line in wanted if line), "")[:80]
        raise PatchError(f"{what} ({shown!r} ...) is found {len(places)} times in the base, not once")
    at = places[0]
    return "\n".join([*lines[:at], *after, *lines[at + count :]])
