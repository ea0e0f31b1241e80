"""What can be said of a listing without executing it: waits that it lacks.

Code that a compiler schedules has all its waits; inline assembly and hand-written assembly may not. Runs in workers:
standard library and yaml only.
"""

from kernel_scientist.gpu.machine import effects as effect
from kernel_scientist.gpu.machine import hazards, waits
from kernel_scientist.gpu.machine.listing import Listing
from kernel_scientist.gpu.machine.omission import Omission

ARCHITECTURES = ("gfx942", "gfx950")
"""Those whose rules are known."""


def omissions(listing: Listing) -> tuple[Omission, ...]:
    """Return the places where a `s_waitcnt` or `s_nop` is missing, in the order of the assembly."""
    if listing.arch not in ARCHITECTURES:
        return ()
    effects = [effect.of(statement.mnemonic, statement.operands) for statement in listing.statements]
    found = [*waits.omissions(listing, effects), *hazards.omissions(listing, effects)]
    return tuple(sorted(found, key=lambda one: one.statement.line))
