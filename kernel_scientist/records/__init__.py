"""Frozen, typed records, JSON both ways; parameters and errors."""
