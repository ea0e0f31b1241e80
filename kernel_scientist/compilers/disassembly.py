"""What a CPU kernel's object code tells: instructions by class, and the innermost loop with the most vector work."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

MOST_COUNTED = 1 << 20
"""Largest object, in bytes, that is disassembled (its disassembly is a hundred times as long)."""
MOST_LINES = 40
"""Most lines of a loop that are shown; a longer one loses its middle."""
MOST_WALKED = 2000
"""Most instructions between a jump back and its target that are followed."""
TIMEOUT_S = 20

_CLASSES = {
    "zmm": r"%zmm",
    "ymm": r"%ymm",
    "xmm": r"%xmm",
    "neon": r"\bv\d+\.\d*[bhsd]\b",
    "sve": r"\bz\d+\.[bhsd]\b",
    "tile load or store": r"^tile(load|stored)",
    "tile product": r"^(tdp|tcmm|[su]?mopa|bfmopa|fmopa)",
    "fma": r"^(vf(n?m)(add|sub)|fml[as])",
    "dot": r"^(v?(dpbf16|pdp)|[su]{1,2}dot|bf(dot|mmla|mlal)|[su]{1,2}mmla)",
    "convert": r"^(vcvt|vpmov[sz]x|[su]?cvtf|fcvt|bfcvt)",
    "permute": r"^v?(perm|shuf|pshuf|punpck|unpck|palign|pblend)",
    "gather": r"^(vp?gather|ld1\w* .*\[x\d+, z)",
    "branch": r"^(j|b\.|cbn?z|tbn?z)",
    "call": r"^(call|bl\b)",
}
"""Patterns of an instruction's text by class."""
_PATTERNS = {name: re.compile(pattern) for name, pattern in _CLASSES.items()}
_STACK = "vector spill"
"""Vector registers that are stored to the stack or loaded from it: spilled, or elements of an array there."""
NAMES = ("all", *_CLASSES, _STACK)
"""Names of all classes."""
_VECTOR = re.compile(r"%[xyz]mm|%tmm|\b[vz]\d+\.\d*[bhsd]|\bq\d+\b")
_JUMP = re.compile(r"^(?:j\w+|b(?:\.\w+)?|cbn?z|tbn?z)\s+(?:[wx]\d+, )?(?:#\w+, )?([0-9a-f]+) <")
_ENDS = re.compile(r"^(?:bnd |notrack |repz? )?(?:jmp|ret|ud2|hlt|br?\s)")
"""Instructions after which the next one is not executed."""
_LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S.*)$")
_WEIGHTS = {"tile product": 1000, "dot": 20, "fma": 20}
"""Weights of classes in the choice of the loop; another instruction on vectors counts 1."""


class CodeLine(NamedTuple):
    """One instruction: its address, and its text without tabs and comments."""

    address: int
    text: str


class ObjectCode(NamedTuple):
    """What an object's disassembly tells."""

    instructions: dict[str, int]
    """Counts by class; `all` counts every one."""
    hot_loop: str
    """The innermost loop with the most vector work, one instruction per line; empty if there is none."""


def inspect(path: Path) -> ObjectCode:
    """Return what the disassembly of an object tells; nothing without objdump, or if the object is too large."""
    objdump = shutil.which("objdump")
    if objdump is None or path.stat().st_size > MOST_COUNTED:
        return ObjectCode({}, "")
    command = [objdump, "-d", "--no-show-raw-insn", str(path)]
    try:
        out = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return ObjectCode({}, "")
    return told(out.stdout)


def told(text: str) -> ObjectCode:
    """Return what objdump's text tells."""
    functions = [parsed(part) for part in text.split("\n\n")]
    counts = Counter[str]()
    for function in functions:
        framed = any(re.match(r"mov\s+%rsp,%rbp", one.text) for one in function)
        for one in function:
            counts.update(["all", *classes(one.text, framed)])
    loops = [loop for function in functions for loop in innermost(function)]
    hottest = max(loops, key=lambda loop: (_work(loop), -len(loop)), default=())
    return ObjectCode(dict(counts), _shown(hottest) if _work(hottest) else "")


def parsed(text: str) -> list[CodeLine]:
    """Return the instructions of one function of objdump's text."""
    found = [match for line in text.splitlines() if (match := _LINE.match(line))]
    return [CodeLine(int(m[1], 16), " ".join(m[2].partition(" #")[0].partition("\t//")[0].split())) for m in found]


def classes(text: str, framed: bool = False) -> list[str]:
    """Return the classes of an instruction. `framed`: whether %rbp is the function's frame pointer."""
    names = [name for name, pattern in _PATTERNS.items() if pattern.search(text)]
    stack = "(%rsp" in text or "[sp" in text or (framed and "(%rbp" in text)
    if stack and _VECTOR.search(text) and re.match(r"v?mov|(ld|st)[rp]|tile(load|stored)", text):
        names.append(_STACK)
    return names


def innermost(function: list[CodeLine]) -> list[list[CodeLine]]:
    """Return the loops of a function that contain no other loop, in their order."""
    places = {one.address: place for place, one in enumerate(function)}
    ranges = set[tuple[int, int]]()
    for place, one in enumerate(function):
        jump = _JUMP.match(one.text)
        target = places.get(int(jump[1], 16)) if jump else None
        if target is not None and target <= place and _leads_back(function, places, target, place):
            ranges.add((target, place))
    inner = [(a, b) for a, b in ranges if not any((c, d) != (a, b) and a <= c and d <= b for c, d in ranges)]
    return [function[a : b + 1] for a, b in sorted(inner)]


def _leads_back(function: list[CodeLine], places: dict[int, int], first: int, last: int) -> bool:
    """Whether a jump back is reached from where it leads, so that it closes a loop.

    Compilers put rare blocks behind a function's end, from which a jump leads back over what is no loop. A range above
    MOST_WALKED counts as a loop.
    """
    seen, todo = set[int](), [first]
    while todo and last - first <= MOST_WALKED:
        place = todo.pop()
        if place == last:
            return True
        if place in seen or not first <= place < last:
            continue
        seen.add(place)
        jump = _JUMP.match(function[place].text)
        todo += [places.get(int(jump[1], 16), -1)] if jump else []
        todo += [] if _ENDS.match(function[place].text) else [place + 1]
    return last - first > MOST_WALKED


def _work(loop: "list[CodeLine] | tuple[()]") -> int:
    total = 0
    for one in loop:
        weights = [_WEIGHTS[name] for name in classes(one.text) if name in _WEIGHTS]
        total += max(weights, default=1 if _VECTOR.search(one.text) else 0)
    return total


def _shown(loop: "list[CodeLine] | tuple[()]") -> str:
    lines = [_JUMP.sub(lambda match: match[0].replace(match[1] + " <", "<"), one.text) for one in loop]
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        lines = [*lines[:half], f"... ({len(lines) - 2 * half + 1} more)", *lines[1 - half :]]
    return "\n".join(lines)
