"""Reads a kernel's source before it runs."""
