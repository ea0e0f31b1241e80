"""The corpus of HIP kernels: faults that were planted, and honest kernels.

Each kernel has a comment in front: `//: name | kind of fault | workgroups x threads + dynamic LDS | arguments`.
Arguments: `in` numbers that may only be read, `out` and `work` memory that nobody wrote, of which `out` is a result,
`zero` and `inout` memory that is set before, `range` 0, 1, 2, ..., `big` memory of zeros, and single numbers. Lines of
the fault end in `// defect`.
"""

import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernel_scientist.gpu.machine.checking import Checks, Tensor
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.dispatch import KernelLaunch, Options
from kernel_scientist.gpu.machine.launch import LaunchResult
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.memory import Memory
from kernel_scientist.gpu.machine.shadow import Reach
from kernel_scientist.gpu.toolchains import hip

FOLDER = Path(__file__).parent / "corpus"
_HEAD = re.compile(r"^//: (\w+) \| ([\w -]*?) ?\| (\d+) x (\d+)(?: \+ (\d+))? \| (.*)$")
_TYPES = {"float": np.float32, "half": np.float16, "int": np.int32, "char": np.int8}
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Case:
    """A kernel of the corpus."""

    file: str
    name: str
    kind: str
    """Of its fault; empty: it is honest."""
    blocks: int
    threads: int
    lds: int
    arguments: str
    lines: tuple[int, ...]
    """Of the fault."""


def cases(file: str) -> list[Case]:
    """Return the kernels of a file."""
    lines = (FOLDER / file).read_text().splitlines()
    heads = [(n, found) for n, line in enumerate(lines) if (found := _HEAD.match(line)) is not None]
    assert len(heads) == sum(line.startswith("//:") for line in lines), "a comment is written wrongly"
    marked = [n + 1 for n, line in enumerate(lines) if line.endswith("// defect")]
    result = list[Case]()
    for place, (start, found) in enumerate(heads):
        name, kind, blocks, threads, lds, arguments = found.groups()
        end = heads[place + 1][0] if place + 1 < len(heads) else len(lines)
        own = tuple(n for n in marked if start < n <= end)
        if name == "in_a_helper":  # its fault is in a function in front of it
            own = (max(n for n in marked if n <= start),)
        result.append(Case(file, name, kind, int(blocks), int(threads), int(lds or 0), arguments, own))
    return result


def compiled(library: Library, file: str) -> Code:
    """Compile a file of the corpus."""
    made = hip.compile_hip((FOLDER / file).read_text(), "gfx942", [])
    assert made.ok, made.log
    return Code(library, made.assembly)


def checked(code: Code, case: Case, seed: int = 1) -> tuple[Checks, LaunchResult]:
    """Run a kernel of the corpus, checking it."""
    checks, memory, random = Checks(code.library), Memory(), np.random.default_rng(seed)
    arguments, results, kept = bytearray(), list[Array](), list[Array]()
    for spec in case.arguments.split(";"):
        what, *rest = spec.split()
        if what in ("int", "float"):
            arguments += struct.pack(
                "<i" if what == "int" else "<f", float(rest[0]) if what == "float" else int(rest[0])
            )
            continue
        kind, count = _TYPES[rest[0]], int(rest[1])
        array = _filled(what, kind, count, random)
        kept.append(array)
        place = int(array.ctypes.data)
        memory.add(place, array.nbytes, what not in ("in", "range"))
        if what in ("out", "work"):
            checks.shadow.poison(place, array.nbytes, seed)
        if what in ("out", "zero", "inout"):
            results.append(array)
        arguments += bytes(-len(arguments) % 8) + struct.pack("<Q", place)
    for n, array in enumerate(kept):
        checks.tensors[int(array.ctypes.data)] = Tensor(f"argument {n}", array.itemsize, array.nbytes)
    launch = KernelLaunch(code, case.name, (case.blocks, 1, 1), (case.threads, 1, 1), bytes(arguments), case.lds)
    options = Options(seed=seed, most_instructions=20_000_000)
    result = checks.run(launch, memory, options).result
    for array in results:
        for origin in np.unique(checks.shadow.origins(int(array.ctypes.data), array.nbytes)):
            checks.shadow.reach(int(origin), Reach.OUTPUT)
    return checks, result


def _filled(what: str, kind: Any, count: int, random: Any) -> Array:
    if what in ("in", "inout"):
        return random.integers(1, 1000, count).astype(kind)
    if what == "range":
        return np.arange(count, dtype=kind)
    return np.zeros(count, kind)
