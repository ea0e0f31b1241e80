"""What a machine can do: the result of `doctor`."""

from kernel_scientist.records.base import Record


class Capability(Record):
    """One capability of a machine."""

    what: str
    """Its name."""
    ok: bool
    """Whether it is there."""
    needed: bool
    """Whether nothing works without it."""
    detail: str
    """What was found, or what is missing."""
