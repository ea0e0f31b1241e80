"""Which line of the user's own source an instruction belongs to, also where a header's function was inlined there.

From the tables for debuggers in the compilers' assembly (DWARF, with LLVM's comments). Runs in workers: standard
library only.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import PurePath

from kernel_scientist.gpu.machine.listing import Listing

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?', re.MULTILINE)
_SOURCE = re.compile(r"\[\d+\]$")
"""How the names of a submission's texts end (`toolchains.sources.joined`)."""
_ENTRY = re.compile(r"^\s*\.byte\s+\d+\s*; Abbrev \[\d+\] \S+ (DW_TAG_\w+)")
_FIELD = re.compile(r"^\s*\.(?:byte|short|long|quad)\s+(\S+)\s*; (DW_AT_\w+)")
_RANGES = re.compile(r"^\.Ldebug_ranges(\d+):")
_PAIR = re.compile(r"^\s*\.(?:uleb128|quad)\s+(\.L\w+)-\.L\w+")


@dataclass(frozen=True)
class Call:
    """A call that was inlined."""

    file: str
    line: int
    spans: tuple[tuple[int, int], ...]
    """Instructions that come from it, each span up to the one behind its last."""

    @property
    def size(self) -> int:
        """Return how many instructions come from it."""
        return sum(end - start for start, end in self.spans)


class Places:
    """Lines of the own source by instruction."""

    def __init__(self, text: str, listing: Listing) -> None:
        found = [(number, PurePath(folder) / name) for number, folder, name in _FILE.findall(text)]
        files = {number: path.name for number, path in found}
        sources = tuple(name for name in files.values() if _SOURCE.search(name))
        self.own = sources or tuple(path.name for _, path in found[:1])
        """The files that the kernels are written in: a submission's texts, else the first one."""
        self._paths = {path.name: str(path) for _, path in reversed(found)}
        self._statements = listing.statements
        calls = [call for call in _calls(text, listing, files) if call.file in self.own]
        self._calls = sorted(calls, key=lambda call: call.size)
        own = (n for n, s in enumerate(listing.statements) if s.source_line and self._is_own(s.file))
        self._certain = list(own)

    def at(self, instruction: int) -> tuple[str, int]:
        """Return file and line of an instruction, or of the nearest one before it; line 0 if nothing is known."""
        statement = self._statements[instruction]
        if statement.source_line and not self._is_own(statement.file):
            for call in self._calls:
                if any(start <= instruction < end for start, end in call.spans):
                    return self._paths[call.file], call.line
        if not self._certain:
            return "", 0
        place = bisect_right(self._certain, instruction)
        known = self._statements[self._certain[max(0, place - 1)]]
        return self._paths[PurePath(known.file).name], known.source_line

    def _is_own(self, file: str) -> bool:
        return PurePath(file).name in self.own


def _calls(text: str, listing: Listing, files: dict[str, str]) -> list[Call]:
    start = text.find("DW_TAG_inlined_subroutine")
    if start < 0:
        return []
    ranges, entries, entry = dict[str, list[tuple[str, str]]](), list[dict[str, str]](), dict[str, str]()
    inside, half = "", ""
    for line in text[start:].splitlines():
        if (found := _ENTRY.match(line)) is not None:
            entry = {}
            if found[1] == "DW_TAG_inlined_subroutine":
                entries.append(entry)
        elif (found := _FIELD.match(line)) is not None:
            entry[found[2]] = found[1]
        elif (found := _RANGES.match(line)) is not None:
            inside, half = found[1], ""
            ranges[inside] = []
        elif inside and (found := _PAIR.match(line)) is not None:
            if half:
                ranges[inside].append((half, found[1]))
            half = "" if half else found[1]
    return [call for entry in entries if (call := _call(entry, ranges, listing.labels, files)) is not None]


def _call(
    entry: dict[str, str], ranges: dict[str, list[tuple[str, str]]], labels: dict[str, int], files: dict[str, str]
) -> Call | None:
    high = entry.get("DW_AT_high_pc", "").split("-")
    if len(high) == 2:
        pairs = [(high[1], high[0])]
    else:
        pairs = ranges.get(entry.get("DW_AT_ranges", "").removeprefix(".Ldebug_ranges"), [])
    spans = tuple((labels[a], labels[b]) for a, b in pairs if a in labels and b in labels)
    if not spans or not entry.get("DW_AT_call_line", "").isdigit():
        return None
    return Call(files.get(entry.get("DW_AT_call_file", ""), ""), int(entry["DW_AT_call_line"]), spans)
