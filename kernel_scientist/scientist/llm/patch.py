"""The kernel in a reply: a whole file, or a change of the base as marked sites, search-and-replace pairs or a diff.

A diff is applied by its content, because models get line numbers wrong: the lines that a hunk keeps or removes must
occur in the base exactly once.
"""

import ast
import re
from collections.abc import Sequence

from kernel_scientist.compilers.source import KernelSource, SourceError
from kernel_scientist.scientist.llm import completeness, whole_file
from kernel_scientist.scientist.llm.parsing import FencedBlock, ParsedReply, ReplyError

BEGIN_PATCH, END_PATCH = "*** Begin Patch", "*** End Patch"
"""Marks of another form of diff, which some models were trained on (`apply_patch`)."""
SEARCH, MIDDLE, REPLACE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]', re.M)
_INCLUDES = re.compile(r'(?:[ \t]*(?:#[ \t]*include[ \t]*[<"][^\n]*)?\n)*[ \t]*#[ \t]*include[ \t]*[<"][^\n]*\n\n*')
_REPORT = re.compile(r"^\W{0,4}(?:REPORT|CRITIQUE)\W", re.M)
MAX_SOURCE = 400_000
"""Characters of a kernel file."""


class PatchError(ReplyError):
    """A change does not apply to the base; a whole file can be sent instead."""


def kernel_from(reply: ParsedReply, base: str) -> str:
    """Return the complete source. Raises PatchError if the change does not apply, ReplyError if there is no kernel."""
    if cut := [b for b in reply.blocks if not b.closed]:
        raise ReplyError(f"the reply ends within a block of {len(cut[-1].text)} characters: it was cut off")
    sites = [b for b in reply.blocks if _site(b)]
    changes = [*reply.blocks, *_unfenced(reply)]
    edits = [b for b in changes if SEARCH in b.text and REPLACE in b.text]
    paired = {id(b) for b in edits}
    diffs = [b for b in changes if id(b) not in paired and _is_diff(b)]
    apart = {id(b) for b in (*sites, *edits, *diffs)}
    rest = [b for b in reply.blocks if id(b) not in apart and SEARCH not in b.text and BEGIN_PATCH not in b.text]
    if files := whole_file.in_blocks(rest) or ([] if apart else whole_file.elsewhere(reply)):
        own = [text for text in files if text.strip() != base.strip()]
        if not own:
            raise ReplyError("the file is the base, without a change")
        # A reply may quote the base beside its own kernel, with a comment.
        source = next((text for text in reversed(own) if _code(text) != _code(base)), own[-1])
        completeness.require_complete(source, base, [b.text for b in reply.blocks])
    elif sites or edits or diffs:
        source = _changed(base, sites, edits, diffs)
        if source == base:
            raise PatchError("the change does not alter the base")
    else:
        blocks = (
            f"{len(reply.blocks)} fenced blocks, none a file with custom_kernel" if reply.blocks else "no fenced block"
        )
        raise ReplyError(f"the reply contains no kernel: {blocks}")
    if len(source) > MAX_SOURCE:
        raise ReplyError(f"the kernel has {len(source)} characters; at most {MAX_SOURCE} are allowed")
    return source


def _code(text: str) -> str:
    """Return a file without its comments and blanks; as it is if it is not Python."""
    try:
        return ast.dump(KernelSource(text).tree())
    except SourceError:
        return text


def _is_diff(block: FencedBlock) -> bool:
    return block.language in ("diff", "patch") or _has_hunk(block.text)


def _has_hunk(text: str) -> bool:
    return bool(re.search(r"^@@", text, re.M) and re.search(r"^[-+]", text, re.M))


def _unfenced(reply: ParsedReply) -> list[FencedBlock]:
    """Return the change that stands in no block, as one."""
    written = [text for text in whole_file.texts(reply) if BEGIN_PATCH in text or SEARCH in text or _has_hunk(text)]
    if written:
        return [FencedBlock("" if SEARCH in text else "diff", text) for text in written]
    if BEGIN_PATCH in reply.text and not any(BEGIN_PATCH in b.text and _is_diff(b) for b in reply.blocks):
        return [FencedBlock("diff", reply.text)]
    if reply.blocks:
        return []
    if SEARCH in reply.text and REPLACE in reply.text:
        return [FencedBlock("", reply.text)]
    if not _has_hunk(reply.text):
        return []
    lines = _REPORT.split(reply.text, maxsplit=1)[0].split("\n")
    last = max(i for i, line in enumerate(lines) if line.startswith(("+", "-", "@@")))
    after = next((i for i, line in enumerate(lines) if i > last and not line.startswith(" ")), len(lines))
    return [FencedBlock("diff", "\n".join(lines[:after]))]


def _changed(
    base: str, sites: Sequence[FencedBlock], edits: Sequence[FencedBlock], diffs: Sequence[FencedBlock]
) -> str:
    for block in sites:
        try:
            base = _with_site(base, _site(block), block.text)
        except SourceError as error:
            raise PatchError(str(error)) from error
    for block in edits:
        base = _replaced(base, block.text)
    for block in diffs:
        base = _patched(base, block.text)
    return base


def _with_site(base: str, name: str, text: str) -> str:
    """Replace a site's text. `#include` lines at its top move to those of the file: a site may lie in a function.

    They stay where they are if the site has had includes before, as one at file scope may.
    """
    changed = KernelSource(base).with_site(name, text)
    body, top = changed.site(name) or "", None
    if not _INCLUDE.search(KernelSource(base).site(name) or ""):
        top = _INCLUDES.match(body)
    if top is None:
        return changed.text
    known = {line.strip() for line in base.split("\n")}
    new = [line for line in dict.fromkeys(map(str.strip, top[0].split("\n"))) if line and line not in known]
    return _including(changed.with_site(name, body[top.end() :]).text, name, new)


def _including(text: str, site: str, includes: Sequence[str]) -> str:
    """Insert `#include` lines after the last one before a site; if there is none, where its string begins."""
    before, mark, after = text.partition(f"@begin {site}")
    lines = before.split("\n")
    places = [i for i, line in enumerate(lines) if _INCLUDE.match(line)]
    places = places or [i for i, line in enumerate(lines) if '"""' in line]
    at = places[-1] + 1 if places else 0
    return "\n".join([*lines[:at], *includes, *lines[at:]]) + mark + after


def _site(block: FencedBlock) -> str:
    match = re.search(r"\bsite[=:][ ]?([\w.-]+)", block.info)
    return match[1] if match else ""


def _replaced(base: str, text: str) -> str:
    """Apply `SEARCH ... ======= ... REPLACE` pairs."""
    parts = re.split(rf"^[ \t]*{SEARCH}[ \t]*\n", text, flags=re.M)[1:]
    if len(parts) != text.count(SEARCH):
        raise PatchError(f"{text.count(SEARCH) - len(parts)} of the lines {SEARCH} hold something else as well")
    for number, part in enumerate(parts, start=1):
        body, closed, _ = part.partition("\n" + REPLACE)
        before, split, after = body.partition("\n" + MIDDLE)
        if not closed or not split:
            raise PatchError(f"pair {number} is not SEARCH, =======, REPLACE, each on a line of its own")
        base = _swap(base, _lines(before), _lines(after.removeprefix("\n")), f"pair {number}")
    return base


def _lines(text: str) -> list[str]:
    """Return a text's lines; other line separators of Unicode may stand in Python's strings."""
    return text.removesuffix("\n").split("\n") if text else []


def _patched(base: str, text: str) -> str:
    """Apply a unified diff's hunks by content."""
    if BEGIN_PATCH in text:  # it may begin without a line of @@
        text = text.partition(BEGIN_PATCH)[2].partition(END_PATCH)[0].strip("\n")
        text = text if re.search("^@@", text, re.M) else f"@@\n{text}"
    text = text.strip("\n")
    if new := _new_file(text):
        completeness.require_complete(new, base)
        return new
    hunks: list[tuple[list[str], list[str]]] = []
    for line in _lines(text):
        if line.startswith("@@"):
            hunks.append(([], []))
        elif not hunks or line.startswith(("\\", "diff ", "index ", "*** ")):
            continue
        elif line.startswith("-"):
            hunks[-1][0].append(line[1:])
        elif line.startswith("+"):
            hunks[-1][1].append(line[1:])
        else:  # context; models drop the space of an empty line
            for side in hunks[-1]:
                side.append(line[1:] if line.startswith(" ") else line)
    if not hunks:
        raise PatchError("the diff has no hunk (a line that begins with @@)")
    for number, (before, after) in enumerate(hunks, start=1):
        base = _swap(base, before, after, f"hunk {number}")
    return base


def _new_file(text: str) -> str:
    """Return the file that a diff adds as a whole; empty if it changes the base."""
    mark = re.search(r"^(?:--- /dev/null|\*\*\* Add File:.*)$", text, re.M)
    lines = [line[1:] for line in _lines(text[mark.end() :]) if re.match(r"\+(?!\+\+ )", line)] if mark else []
    file = "\n".join(lines) + "\n"
    return file if whole_file.ENTRY.search(file) else ""


def _swap(base: str, before: list[str], after: list[str], part: str) -> str:
    """Replace lines that occur in the base exactly once; trailing spaces are ignored."""
    lines, wanted = base.split("\n"), [line.rstrip() for line in before]
    if not any(wanted):
        raise PatchError(f"{part} has no line of the base, so its position is unknown")
    stripped, count = [line.rstrip() for line in lines], len(wanted)
    positions = [i for i, line in enumerate(stripped) if line == wanted[0] and stripped[i : i + count] == wanted]
    if len(positions) != 1:
        first = next(line for line in wanted if line)[:80]
        raise PatchError(f"{part} ({first!r} ...) occurs {len(positions)} times in the base, not once")
    start = positions[0]
    return "\n".join([*lines[:start], *after, *lines[start + count :]])
