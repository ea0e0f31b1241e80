"""Code that is loaded into the machine.

Runs in workers: standard library and numpy only.
"""

import weakref
from functools import cached_property

from kernel_scientist.gpu.isa.symbols import plain
from kernel_scientist.gpu.machine import listing as listings
from kernel_scientist.gpu.machine import program as programs
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.line_table import LineTable
from kernel_scientist.gpu.machine.listing import KernelDescriptor, Statement


class Code:
    """A file of assembly."""

    def __init__(self, library: Library, text: str) -> None:
        """Load it. Raises ListingError or ProgramError."""
        if library.packed_bytes != programs.PACKED.itemsize:
            raise RuntimeError("the machine's native library is of another version; remove it from the cache")
        self.library, self._text = library, text
        self.listing = listings.read(text)
        self.program = programs.packed(self.listing, library.rows)
        self.handle: int = library.load(self.program.packed.ctypes.data, len(self.program.packed))
        weakref.finalize(self, library.free, self.handle)

    @cached_property
    def lines(self) -> LineTable:
        """Return which lines of the source the instructions belong to."""
        return LineTable(self._text, self.listing)

    @property
    def kernels(self) -> dict[str, KernelDescriptor]:
        """Return the kernels by their symbols."""
        return self.listing.kernels

    @cached_property
    def names(self) -> dict[str, str]:
        """Return the kernels' names as their source says them, by their symbols."""
        return plain(list(self.kernels))

    @cached_property
    def communicates(self) -> bool:
        """Return whether workgroups may need each other: by atomic operations, or accesses that others see at once.

        Those are accesses of volatile variables, and atomic loads and stores: their scope is wider than a CU (`sc1`).
        """
        return any("_atomic_" in s.mnemonic or "sc1" in s.operands.split() for s in self.listing.statements)

    @cached_property
    def listens(self) -> tuple[int, ...]:
        """Return the instructions that read what other workgroups may change: by an atomic operation or past the
        caches."""

        def reads(one: Statement) -> bool:
            words = one.operands.split()
            return ("_atomic_" in one.mnemonic and "sc0" in words) or ("_load_" in one.mnemonic and "sc1" in words)

        return tuple(number for number, one in enumerate(self.listing.statements) if reads(one))

    @property
    def calls_host(self) -> bool:
        """Return whether it may call the host. Device libraries older than the compiler take the address of the buffer
        for that from where 0 lies.
        """
        return any(one.mnemonic == "s_sendmsg" for one in self.missing)

    @property
    def missing(self) -> tuple[Statement, ...]:
        """Return the instructions that the machine does not know, by their first appearance."""
        found = {
            programs.base_name(s.mnemonic): s
            for n in reversed(self.program.missing)
            for s in (self.listing.statements[n],)
        }
        return tuple(found.values())

    def symbol(self, name: str) -> tuple[int, int] | None:
        """Return address and size of a variable of the device."""
        place = self.program.symbols.get(name)
        return None if place is None else (int(self.program.data.ctypes.data) + place[0], place[1])
