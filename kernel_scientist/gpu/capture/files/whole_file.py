"""Inspects a file as it lies in its package: its import, a call of its entry, and its kernels alone.

Runs in the untrusted process: imports the standard library, torch, triton, and modules of this package.
"""

import ast
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import triton.testing

from kernel_scientist.gpu.capture.files import importing, running
from kernel_scientist.gpu.capture.files.large_tensors import SkipsLarge
from kernel_scientist.gpu.capture.files.limits import cpu_seconds
from kernel_scientist.gpu.capture.files.statements import is_kernel
from kernel_scientist.gpu.capture.files.statements import words as plain
from kernel_scientist.gpu.capture.launches import Recorder, TorchRecorder
from kernel_scientist.gpu.capture.reply import Reply, words

TRACE_S, TUNING_S, CALL_S = 5.0, 15.0, 60.0
"""Limits of one launch's trace, of one search of an autotuner, and of the entry's call."""
IMPORT = "import"
"""Name of the case of launches while the file is imported."""


def inspected(request: dict[str, Any], recorder: Recorder, reply: Reply) -> None:
    """Import the file, call its entry if there are inputs, and compile its other kernels alone."""
    recorder.trace_s, recorder.tuning_s = TRACE_S, TUNING_S
    triton.testing.Mark.run = _unmeasured  # pyright: ignore[reportAttributeAccessIssue]
    module = _imported(request["file"], recorder, reply)
    if module is None:
        return
    if request["entry"] and (request["inputs"] is not None or hasattr(module, "get_inputs")):
        _called(module, request["entry"], request["inputs"], recorder)
        reply.write()
    if request["inputs"] is None or not recorder.launches:
        reply.keep(module, request["skip"], request["small"])
    for line, name in _inner(Path("kernel.py").read_text()):
        recorder.missed.append(f"no call: kernel.py, line {line}: {name} is defined inside of a function: give --entry")


def _unmeasured(*_: Any, **__: Any) -> None:
    """Replace a benchmark's run: nothing is measured here."""


def _imported(file: dict[str, Any], recorder: Recorder, reply: Reply) -> ModuleType | None:
    recorder.begin(IMPORT, ())

    def tell(line: int, what: str) -> None:
        recorder.missed.append(f"{IMPORT}: kernel.py, line {line}: {what}")

    try:
        with SkipsLarge():
            place, asked = (file["module"], file["path"], file["roots"]), recorder.facts.programs()
            return importing.imported(Path("kernel.py").resolve(), *place, asked, tell)
    except SyntaxError as error:
        reply.failure = f"kernel.py, line {error.lineno}: SyntaxError: {error.msg}"
        return None


def _called(module: ModuleType, entry: str, given: dict[str, Any] | None, recorder: Recorder) -> None:
    """Call the entry; report what keeps it from launching."""
    try:
        with cpu_seconds(CALL_S, entry), SkipsLarge():
            positional, named = running.arguments(module, given)
            recorder.begin(entry, [positional, named])
            with TorchRecorder(recorder):
                running.call(module, entry, positional, named)
    except running.EntryError as error:
        recorder.missed.append(f"{entry}: {error}")
    except Exception as error:
        told = words(error)
        recorder.missed.append(f"{entry}: {told if told.startswith('kernel.py') else plain(error)}")
    recorder.timed_out |= time.monotonic() > recorder.deadline


def _inner(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines and names of kernels that are defined inside of functions."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        for node in ast.walk(function):
            if node is not function and isinstance(node, ast.FunctionDef) and is_kernel(node):
                yield node.lineno, node.name
