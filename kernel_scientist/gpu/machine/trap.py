"""How a wave ends itself where an assumption of its source is false. Imports nothing."""

TRAP = 65
"""Number of the trap; compilers use 2 and 3."""
