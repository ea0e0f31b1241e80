"""Reads a kernel's source before it runs: tampering, for which it is rejected, and advice, which decides nothing."""

from kernel_scientist.evaluate.screen.finding import Finding, Severity
from kernel_scientist.evaluate.screen.screening import Screen

__all__ = ["Finding", "Screen", "Severity"]
