"""Assembly of AMD GPUs, as LLVM prints it, as instructions, labels, data and kernels.

Runs in workers: standard library and yaml only.
"""

import hashlib
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import yaml

_LABEL = re.compile(r'("[^"]*"|[\w.$@]+):(.*)$')
_BLOCK = re.compile(r"^\s*\.amdgpu_metadata\s*\n(.*?)^\s*\.end_amdgpu_metadata", re.MULTILINE | re.DOTALL)
_ARCH = re.compile(r"--(gfx\w+)")
_SIZES = {
    ".byte": 1,
    ".short": 2,
    ".2byte": 2,
    ".hword": 2,
    ".long": 4,
    ".4byte": 4,
    ".int": 4,
    ".quad": 8,
    ".8byte": 8,
}
_NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+)$")
_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)")
_ESCAPES = {"n": 10, "t": 9, "r": 13, "b": 8, "f": 12, '"': 34, "\\": 92}
_DATA = (".rodata", ".data", ".bss", ".tbss", ".lrodata", ".ldata", ".lbss")
"""Sections that are loaded; others describe the code for debuggers."""
FILLED = b"\0"
STACK_BYTES = 16384
"""Scratch of a lane where the compiler does not know how deep calls go (recursion, pointers to functions). HIP's
runtime gives 1 KiB unless the host asks for more (`hipLimitStackSize`); LLVM assumes so much for an unknown callee."""


@dataclass(frozen=True)
class Statement:
    """An instruction as it is written."""

    mnemonic: str
    operands: str
    line: int
    """In the assembly, from 1 on."""
    file: str
    source_line: int
    """In the source, by `.loc`; 0 where there is none."""


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel, explicit or hidden."""

    offset: int
    size: int
    kind: str
    """`global_buffer`, `by_value`, `hidden_block_count_x`, ..."""


@dataclass(frozen=True)
class KernelDescriptor:
    """What the loader knows of a kernel."""

    name: str
    arguments: tuple[Argument, ...]
    kernarg_bytes: int
    lds_bytes: int
    scratch_bytes: int
    most_threads: int
    """Of a workgroup."""
    descriptor: dict[str, int]
    """Directives `.amdhsa_...` without the prefix, where their values are numbers."""


@dataclass
class Data:
    """A symbol's bytes, and the addresses to be put into them."""

    content: bytearray = field(default_factory=bytearray)
    references: list[tuple[int, str, int]] = field(default_factory=list[tuple[int, str, int]])
    """Offset, symbol, and what is added to its address."""
    align: int = 16


@dataclass(frozen=True)
class Listing:
    """A file of assembly."""

    arch: str
    statements: tuple[Statement, ...]
    labels: dict[str, int]
    """Index of the statement that follows each label of code."""
    kernels: dict[str, KernelDescriptor]
    data: dict[str, Data]
    shared: dict[str, int]
    """Sizes of symbols in LDS whose offsets the compiler left open."""

    @cached_property
    def digest(self) -> str:
        """Return sha256 of kernels and instructions: unlike the text's it does not depend on where the source lay."""
        code = [self.arch, *self.kernels, *(f"{one.mnemonic} {one.operands}" for one in self.statements)]
        return hashlib.sha256("\n".join(code).encode()).hexdigest()


class ListingError(ValueError):
    """The text is not a whole file of AMD assembly."""


def read(text: str) -> Listing:
    """Read a file of assembly. Raises ListingError."""
    block = _BLOCK.search(text)
    if block is None:
        raise ListingError("no .amdgpu_metadata block: the text is cut off or is not a whole file of AMD assembly")
    metadata: dict[str, Any] = yaml.load(
        block[1].split("\n...")[0], Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    arch = _ARCH.search(str(metadata.get("amdhsa.target", "")))
    if arch is None:
        raise ListingError("the metadata name no architecture")
    reader = _ListingReader()
    for number, line in enumerate(text[: block.start()].splitlines(), 1):
        reader.take(line, number)
    kernels = {k[".name"]: _kernel(k, reader.descriptors) for k in metadata.get("amdhsa.kernels", ())}
    if lost := [name for name in kernels if name not in reader.labels]:
        raise ListingError(f"the code of kernel {lost[0]!r} is missing")
    return Listing(arch[1], tuple(reader.statements), reader.labels, kernels, reader.data, reader.shared)


def _kernel(found: dict[str, Any], descriptors: dict[str, dict[str, int]]) -> KernelDescriptor:
    arguments = tuple(Argument(a[".offset"], a[".size"], a[".value_kind"]) for a in found.get(".args", ()))
    return KernelDescriptor(
        name=found[".name"],
        arguments=arguments,
        kernarg_bytes=found.get(".kernarg_segment_size", 0),
        lds_bytes=found.get(".group_segment_fixed_size", 0),
        scratch_bytes=max(
            found.get(".private_segment_fixed_size", 0), STACK_BYTES * found.get(".uses_dynamic_stack", False)
        ),
        most_threads=found.get(".max_flat_workgroup_size", 1024),
        descriptor=descriptors.get(found[".name"], {}),
    )


class _ListingReader:
    """Takes line after line."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self.labels: dict[str, int] = {}
        self.data: dict[str, Data] = {}
        self.shared: dict[str, int] = {}
        self.descriptors: dict[str, dict[str, int]] = {}
        self._files: dict[str, str] = {}
        self._place: tuple[str, int] = ("", 0)
        self._described: dict[str, int] | None = None
        self._in_code, self._in_data, self._symbol = True, False, Data()
        self._align = 1

    def take(self, line: str, number: int) -> None:
        """Take a line."""
        code = _uncommented(line).strip()
        if (label := _LABEL.match(code)) is not None and not code.startswith(".amdhsa"):
            self._label(label[1].strip('"'))
            code = label[2].strip()
        if not code:
            return
        name, _, rest = code.partition(" ") if " " in code else code.partition("\t")
        name, rest = name.strip(), rest.strip()
        if "\t" in name:
            name, _, rest = code.partition("\t")
        if name.startswith("."):
            self._directive(name, rest)
        elif self._in_code:
            self.statements.append(Statement(name, rest, number, *self._place))

    def _label(self, name: str) -> None:
        if self._in_code:
            self.labels[name] = len(self.statements)
        elif self._in_data:
            self._symbol = self.data[name] = Data(align=max(16, self._align))

    def _directive(self, name: str, rest: str) -> None:
        if self._described is not None or name == ".amdhsa_kernel":
            self._describe(name, rest)
        elif name in (".text", ".section", ".data", ".bss", ".rodata"):
            section = rest.split(",")[0].strip('"') if name == ".section" else name
            self._in_code, self._in_data = section.startswith(".text"), section.startswith(_DATA)
        elif name == ".file":
            parts = re.findall(r'"([^"]*)"', rest)
            if rest[:1].isdigit() and parts:
                self._files[rest.split()[0]] = parts[-1]
        elif name == ".loc":
            file, line = rest.split()[:2]
            self._place = (self._files.get(file, ""), int(line))
        elif name in (".amdgpu_lds", ".comm", ".lcomm"):
            symbol, size, *_ = (part.strip() for part in rest.split(","))
            if name == ".amdgpu_lds":
                self.shared[symbol] = int(size, 0)
            else:
                self.data[symbol] = Data(bytearray(int(size, 0)))
        elif name in (".p2align", ".align", ".balign"):
            self._align = 1 << int(rest.split(",")[0], 0) if name == ".p2align" else int(rest.split(",")[0], 0)
        elif self._in_data:
            self._datum(name, rest)

    def _describe(self, name: str, rest: str) -> None:
        if name == ".amdhsa_kernel":
            self._described = self.descriptors[rest] = {}
        elif name == ".end_amdhsa_kernel":
            self._described = None
        elif self._described is not None and _NUMBER.match(rest):
            self._described[name.removeprefix(".amdhsa_")] = int(rest, 0)

    def _datum(self, name: str, rest: str) -> None:
        content = self._symbol.content
        if name in _SIZES:
            size = _SIZES[name]
            for part in (part.strip() for part in rest.split(",")):
                if _NUMBER.match(part):
                    content += (int(part, 0) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
                else:
                    symbol, _, added = part.partition("+")
                    self._symbol.references.append((len(content), symbol.strip(), int(added or "0", 0)))
                    content += bytes(size)
        elif name in (".zero", ".skip", ".space", ".fill"):
            parts = [int(part, 0) for part in rest.split(",")]
            size = parts[0] * (parts[1] if name == ".fill" and len(parts) > 1 else 1)
            content += bytes(size)
        elif name in (".ascii", ".asciz", ".string"):
            content += _text(rest) + (b"" if name == ".ascii" else FILLED)


def _text(quoted: str) -> bytes:
    inner = quoted.strip()[1:-1]
    out, last = bytearray(), 0
    for found in _ESCAPE.finditer(inner):
        out += inner[last : found.start()].encode()
        code = found[1]
        out.append(int(code, 8) & 255 if code[0].isdigit() else _ESCAPES.get(code, ord(code)))
        last = found.end()
    return bytes(out + inner[last:].encode())


def _uncommented(line: str) -> str:
    """Return a line without its comment; quotes may contain the signs of one."""
    if '"' not in line:
        return line.split(";", 1)[0].split("//", 1)[0]
    quoted = False
    for place, sign in enumerate(line):
        if sign == '"' and line[place - 1] != "\\":
            quoted = not quoted
        elif not quoted and (sign == ";" or line.startswith("//", place)):
            return line[:place]
    return line
