"""Python's parser for threads: one text at a time.

CPython counts the depth of the syntax tree that it converts in one place for all threads. If a garbage collection runs
Python code meanwhile, another thread may start to parse, and the first one's call ends with SystemError ("AST
constructor recursion depth mismatch"; github.com/python/cpython/issues/106905). That ended campaigns on Python 3.11.7.
"""

import ast
import threading

_lock = threading.RLock()


def parsed(text: str, filename: str = "<unknown>") -> ast.Module:
    """Return a file's syntax tree. Raises what `ast.parse` raises."""
    with _lock:
        return ast.parse(text, filename)


def expression(text: str) -> ast.expr:
    """Return an expression's syntax tree. Raises what `ast.parse` raises."""
    with _lock:
        return ast.parse(text, mode="eval").body
