"""An advisory reading of a kernel's source, before it runs: what it calls, and which known cheats it looks like.

A label never decides by itself. What decides is what a kernel does (fresh inputs, compared outputs, outside clocks); a
label goes into the record, tells a person where to look, and makes a surprising speedup worth a second look.
"""

from kernel_scientist.evaluate.screen.finding import Label, Severity
from kernel_scientist.evaluate.screen.rules import findings
from kernel_scientist.evaluate.screen.screening import Screen

__all__ = ["Label", "Screen", "Severity", "findings"]
