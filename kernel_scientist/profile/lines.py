"""From addresses in a kernel's objects to lines of the submission's file."""

import re
import shutil
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from kernel_scientist.profile.dispatches import CountingError
from kernel_scientist.sandbox import confine

TIMEOUT_S = 30.0
MOST_PRINTED = 4 << 20
"""Bytes that are read of what a program prints about addresses."""
SOURCE = "kernel.cpp"
"""The compiled file's name (`compilers.gxx`)."""
_FRAME = re.compile(rf"(?:^|/){re.escape(SOURCE)}:(\d{{1,7}})(?: |$)")
PT_LOAD = 1


def of_addresses(path: Path, offsets: Iterable[int], folder: Path) -> dict[int, int]:
    """Return the compiled file's line for each offset in an object, as far as it is known.

    A function of a header that the compiler put in counts as the line that calls it. Raises CountingError without
    addr2line, or if it fails.
    """
    tool = shutil.which("addr2line")
    if tool is None:
        raise CountingError("no source lines: addr2line is not on PATH; install binutils")
    places = {address: offset for offset in offsets if (address := _address(path, offset)) is not None}
    if not places:
        return {}
    (folder / "addresses").write_text("\n".join(map(hex, places)))
    program = [tool, "-a", "-i", "-e", str(path), "@addresses"]
    status, text = confine.run(
        confine.command(program, folder, (str(path),)), folder, TIMEOUT_S, log_bytes=MOST_PRINTED
    )
    if status != 0:
        raise CountingError(f"no source lines: addr2line ended with status {status}")
    found, current = dict[int, int](), None
    for line in text.splitlines():
        if re.fullmatch(r"0x[0-9a-f]{1,16}", line):
            current = places.get(int(line, 16))
        elif current is not None and (frame := _FRAME.search(line)):
            found.setdefault(current, int(frame[1]))  # frames come from the innermost on
    return found


def in_file(file: str, compiled: str) -> dict[int, int]:
    """Return the lines of a submission's file by those of a text that it has compiled.

    A text that stands in the file as it is lies there line by line. Otherwise (escapes, parts put together) a line is
    found if the file has it once.
    """
    begin = file.find(compiled) if compiled.strip() else -1
    if begin >= 0:
        before = file.count("\n", 0, begin)
        return {number: number + before for number in range(1, compiled.count("\n") + 2)}
    stripped = [line.strip() for line in file.split("\n")]
    places, once = {text: n for n, text in enumerate(stripped, start=1)}, Counter(stripped)
    texts = enumerate(compiled.split("\n"), start=1)
    return {n: places[line.strip()] for n, line in texts if line.strip() and once[line.strip()] == 1}


def _address(path: Path, offset: int) -> int | None:
    """Return the address at which an object's byte is meant to be loaded; None if it is not one of its segments.

    Reads the program headers of a 64-bit ELF file (ELF-64 Object File Format, version 1.5, figures 2 and 7).
    """
    with path.open("rb") as file:
        head = file.read(64)
        if len(head) < 64 or head[:5] != b"\x7fELF\x02":
            return None
        (table,), (size, number) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
        file.seek(table)
        rows = file.read(size * number)
    for start in range(0, len(rows) - 55, max(size, 56)):
        kind, _, begin, address, _, length = struct.unpack_from("<IIQQQQ", rows, start)
        if kind == PT_LOAD and begin <= offset < begin + length:
            return int(address + offset - begin)
    return None
