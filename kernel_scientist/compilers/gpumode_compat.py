"""What a kernel's file may import beside torch: the problem's Python files, above all GPU MODE's `task` and `utils`.

Imports only the standard library and `records.objects`, because it lives in untrusted processes.
"""

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from kernel_scientist.records import objects


def provide(files: Mapping[str, str]) -> None:
    """Make files importable: their text by module name. They are written to the working directory.

    Without a `task` among them there is one with placeholders for the types of inputs and outputs, as most submissions
    begin with `from task import input_t, output_t`.
    """
    for name, text in files.items():
        Path(f"{name}.py").write_text(text)
    if files:
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    if "task" not in files:
        task = ModuleType("task")
        task.__dict__.update(input_t=TypeVar("input_t"), output_t=TypeVar("output_t"))
        sys.modules.setdefault("task", task)


def with_objects(inputs: Any) -> Any:
    """Return inputs with new objects of the reference's classes in place of the dicts that stand for them."""
    if not objects.has_objects(inputs):
        return inputs
    return objects.revived(inputs, vars(importlib.import_module("reference")))
