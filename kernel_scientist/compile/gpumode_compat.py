"""GPU MODE's `task` module: `from task import input_t, output_t` is the first line of most submissions.

Imports only the standard library, because it lives in the worker.
"""

import sys
from types import ModuleType
from typing import TypeVar


def provide() -> None:
    """Let a kernel's file import `task`, whose names stand for whatever goes in and comes out."""
    task = ModuleType("task")
    task.__dict__.update(input_t=TypeVar("input_t"), output_t=TypeVar("output_t"))
    sys.modules.setdefault("task", task)
