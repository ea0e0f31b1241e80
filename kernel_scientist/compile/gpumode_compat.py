"""GPU MODE's `task` module: `from task import input_t, output_t` is the first line of most submissions.

Imports only the standard library, because it lives in the worker.
"""

import sys
from types import ModuleType
from typing import TypeVar


def provide() -> None:
    """Provide a module `task`, with placeholders for the types of inputs and outputs, for a kernel's file to import."""
    task = ModuleType("task")
    task.__dict__.update(input_t=TypeVar("input_t"), output_t=TypeVar("output_t"))
    sys.modules.setdefault("task", task)
