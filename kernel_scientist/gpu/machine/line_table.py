"""Which line of the user's own source an instruction belongs to, and which lines call the function that it is in.

From the tables for debuggers in the compilers' assembly (DWARF, with LLVM's comments). Runs in workers: standard
library only.
"""

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from kernel_scientist.gpu.machine.listing import Listing
from kernel_scientist.gpu.toolchains.quoted_sources import Place

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?', re.MULTILINE)
_SOURCE = re.compile(r"\[\d+\]$")
"""How the names of a submission's texts end (`toolchains.sources.joined`)."""
_ENTRY = re.compile(r"^\s*\.byte\s+\d+\s*; Abbrev \[\d+\] \S+ (DW_TAG_\w+)")
_FIELD = re.compile(r"^\s*\.(?:byte|short|long|quad)\s+(\S+)\s*; (DW_AT_\w+)")
_RANGES = re.compile(r"^\.Ldebug_ranges(\d+):")
_PAIR = re.compile(r"^\s*\.(?:uleb128|quad)\s+(\.L\w+)-\.L\w+")
SMALL = 3
"""Lines of an inlined function up to which it is small."""


@dataclass(frozen=True)
class InlinedCall:
    """A call that was inlined."""

    file: str
    line: int
    spans: tuple[tuple[int, int], ...]
    """Instructions that come from it, each span up to the one behind its last."""

    @property
    def size(self) -> int:
        """Return how many instructions come from it."""
        return sum(end - start for start, end in self.spans)

    @property
    def instructions(self) -> Iterator[int]:
        """Return their numbers."""
        return itertools.chain.from_iterable(range(*span) for span in self.spans)


class LineTable:
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
        self._calls = sorted(calls, key=lambda call: call.size, reverse=True)[::-1]  # of two of a size the inner first
        own = (n for n, s in enumerate(listing.statements) if s.source_line and self._is_own(s.file))
        self._certain = list(own)

    def at(self, instruction: int) -> Place:
        """Return file and line of an instruction, or of the nearest one before it; line 0 if nothing is known."""
        return next(iter(self.chain(instruction)), ("", 0))

    def chain(self, instruction: int) -> tuple[Place, ...]:
        """Return file and line of an instruction as `at` does, then of the calls by which that was inlined, from within
        outwards; empty if nothing is known."""
        return tuple(place for place, _ in self._frames(instruction))

    def condensed(self, instruction: int) -> tuple[Place, ...]:
        """Return the same chain, without the lines of small functions: to a reader they are a part of the line that
        calls them."""
        return self.chain(instruction)[self.small(instruction) :]

    def small(self, instruction: int) -> int:
        """Return how many places at the beginning of the chain lie in small functions."""
        return len(list(itertools.takewhile(lambda frame: 0 < frame[1] <= SMALL, self._frames(instruction))))

    def known(self, instruction: int) -> bool:
        """Return whether the compiler named a line of the instruction. Of one that it moved it names none."""
        return self._statements[instruction].source_line > 0

    def _frames(self, instruction: int) -> list[tuple[Place, int]]:
        """Return places, and of how many own lines the inlined function is in which each lies; 0 in the kernel."""
        statement, calls = self._statements[instruction], self._around[instruction]
        places: list[Place] = [(self._paths[call.file], call.line) for call in calls]
        sizes = [self._lines[call] for call in calls]
        if statement.source_line and self._is_own(statement.file):
            places.insert(0, (self._paths[PurePath(statement.file).name], statement.source_line))
            return list(zip(places, [*sizes, 0], strict=True))
        if statement.source_line and places:
            return list(zip(places, [*sizes[1:], 0], strict=True))
        place = bisect_right(self._certain, instruction)
        return self._frames(self._certain[max(0, place - 1)]) if self._certain else []

    @cached_property
    def _around(self) -> list[list[InlinedCall]]:
        """The inlined calls that each instruction comes from, the innermost first."""
        found: list[list[InlinedCall]] = [[] for _ in self._statements]
        for call in self._calls:
            for instruction in call.instructions:
                found[instruction].append(call)
        return found

    @cached_property
    def _lines(self) -> dict[InlinedCall, int]:
        """Of how many lines of the own source the instructions of each call are; at least one."""
        lines = [(s.file, s.source_line) if s.source_line and self._is_own(s.file) else None for s in self._statements]
        return {call: max(1, len({lines[n] for n in call.instructions} - {None})) for call in self._calls}

    def _is_own(self, file: str) -> bool:
        return PurePath(file).name in self.own


def _calls(text: str, listing: Listing, files: dict[str, str]) -> list[InlinedCall]:
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
) -> InlinedCall | None:
    high = entry.get("DW_AT_high_pc", "").split("-")
    if len(high) == 2:
        pairs = [(high[1], high[0])]
    else:
        pairs = ranges.get(entry.get("DW_AT_ranges", "").removeprefix(".Ldebug_ranges"), [])
    spans = tuple((labels[a], labels[b]) for a, b in pairs if a in labels and b in labels)
    if not spans or not entry.get("DW_AT_call_line", "").isdigit():
        return None
    return InlinedCall(files.get(entry.get("DW_AT_call_file", ""), ""), int(entry["DW_AT_call_line"]), spans)
