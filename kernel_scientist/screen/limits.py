"""How much of a text is read, so that a hostile one costs bounded time."""

LONGEST = 200_000
"""Characters of a source, or of a string it spells, that are read; an honest kernel has a tenth of that."""
LARGEST = 100_000
"""Nodes of a syntax tree that are read, which takes about a second; an honest kernel has a few thousand."""
MOST = 8
"""Findings of one rule that are kept."""
