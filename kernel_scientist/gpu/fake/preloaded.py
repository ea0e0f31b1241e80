"""Imports what Triton would import at its first compilation, so that processes which are forked later share it.

Runs in untrusted processes, before a submission is imported: standard library and triton only.
"""

import contextlib
import importlib

LATE = ("triton.compiler.code_generator", "triton.experimental.gluon", "triton.language.extra.libdevice")
"""It takes a fifth of a CPU second; other versions of Triton may lack some of them."""


def load(*more: str) -> None:
    """Import these modules, and `more`."""
    for name in (*LATE, *more):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
