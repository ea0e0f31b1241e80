"""Triton's interpreter, made exact: an oracle for tests."""
