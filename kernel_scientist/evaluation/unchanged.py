"""Tells whether a kernel's machine code and launches are those of its base: then its time is known."""

import re
from typing import Any

from kernel_scientist.gpu.capture.inspect import UNKNOWN
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.records.evaluation import CodeObject, CompileReport, Evaluation
from kernel_scientist.records.kernel import Verdict

_NO_CODE = re.compile(r"^\s*($|[;#/]|\.(?!LBB))")
"""Lines of assembly that say nothing about instructions: comments and directives, with line numbers among them."""


def unchanged(base: Evaluation, compiled: Evaluation) -> Evaluation | None:
    """Return the result of a kernel that was compiled to what its base is; None for any other.

    Compile-time constants and launch options may differ if the machine code does not.
    """
    before, after = base.compile, compiled.compile
    if before is None or after is None or not after.launches or _launches(before) != _launches(after):
        return None
    reason = "machine code and launches are those of its base"
    return compiled.model_copy(update={"verdict": Verdict.NO_CHANGE, "reason": reason})


def _launches(report: CompileReport) -> list[Any]:
    codes = [_code(code) for code in report.objects]
    return [(launch.case, launch.grid, launch.scalars, codes[launch.code]) for launch in report.launches]


def _code(code: CodeObject) -> Any:
    """Return what identifies a code object but for names and line numbers."""
    text = assembly.get(code.digest)
    if text is None:
        return code.digest
    lines = [line.split(";")[0].strip() for line in text.splitlines() if not _NO_CODE.match(line)]
    instructions = "\n".join(lines).replace(code.kernel, "kernel")
    return instructions, code.model_copy(update={"digest": "", "kernel": "", **UNKNOWN})
