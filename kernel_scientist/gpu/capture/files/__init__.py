"""Inspects Python files as they lie in packages: they need no `custom_kernel`, and their package need not import."""
