"""Frozen, typed records, converted to and from JSON; parameters and errors."""
