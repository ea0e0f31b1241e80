"""Measurements of our own overheads."""
