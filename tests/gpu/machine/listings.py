"""Small listings for tests."""

from kernel_scientist.gpu.machine import listing, static_checks
from kernel_scientist.gpu.machine.listing import Listing
from kernel_scientist.gpu.machine.omission import Omission

END = """
.amdgpu_metadata
---
amdhsa.kernels:
  - .name: k
amdhsa.target: amdgcn-amd-amdhsa--gfx942
...
.end_amdgpu_metadata
"""


def listed(*lines: str) -> Listing:
    """Return a kernel of these instructions and labels; the first is in line 2."""
    return listing.read("\n".join(("k:", *lines, "s_endpgm", END)))


def missing(*lines: str) -> list[tuple[int, str]]:
    """Return the lines that come too early, the first instruction's being 1, and what is missing there."""
    return [(one.statement.line - 1, one.remedy) for one in omitted(*lines)]


def omitted(*lines: str) -> tuple[Omission, ...]:
    """Return what these instructions lack."""
    return static_checks.omissions(listed(*lines))
