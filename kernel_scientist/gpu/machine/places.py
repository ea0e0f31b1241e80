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
        self.path = found[0][1] if found else PurePath()
        """The file that the kernels are written in: the first one."""
        self.own = self.path.name
        self._statements = listing.statements
        calls = [call for call in _calls(text, listing, files) if call.file == self.own]
        self._calls = sorted(calls, key=lambda call: call.size)
        own = (n for n, s in enumerate(listing.statements) if s.source_line and PurePath(s.file).name == self.own)
        self._certain = list(own)

    def line(self, instruction: int) -> int:
        """Return the line of an instruction, or that of the nearest one before it; 0 if nothing is known."""
        statement = self._statements[instruction]
        if statement.source_line and PurePath(statement.file).name == self.own:
            return statement.source_line
        if statement.source_line:
            for call in self._calls:
                if any(start <= instruction < end for start, end in call.spans):
                    return call.line
        place = bisect_right(self._certain, instruction)
        if place == 0:
            return self._statements[self._certain[0]].source_line if self._certain else 0
        return self._statements[self._certain[place - 1]].source_line


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
