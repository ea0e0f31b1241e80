"""Compilers and disassemblers of GPUs."""
