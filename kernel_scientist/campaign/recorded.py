"""The confirmation that a campaign recorded beside its champion's file, so that the pipeline need not repeat it.

It stands for a new one only if kernel, problem, evaluator, settings and machine are the same.
"""

import json
from pathlib import Path
from typing import Any

from kernel_scientist.campaign import preflight
from kernel_scientist.campaign.evaluation_context import fingerprint
from kernel_scientist.compile.source import language_of, read_kernel
from kernel_scientist.hardware.targets import Target
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Params

FILE, KEY = "validation.json", "key"
"""The file, with the JSON of `validate`, and its field that tells of what the confirmation is."""


def key(params: Params, problem: Problem, target: Target, kernel: Kernel) -> str:
    """Return all that a confirmation of a kernel depends on, as a digest; empty if other hosts confirm it."""
    if target.pool or target.board:
        return ""
    return fingerprint(params, problem, target, kernel, f"confirm {params.validate_.model_dump_json()}")


def confirmation(file: Path, params: Params) -> dict[str, Any] | None:
    """Return the JSON of `validate` that was recorded beside a kernel's file; None if a new one must be made.

    Raises SetupError for a file that is no kernel, and for parameters that cannot be evaluated here.
    """
    source = read_kernel(file)
    kernel = Kernel(name=file.stem, language=language_of(source), source=source)
    problem, target = preflight.resolve(params.model_copy(update={"language": kernel.language}))
    try:
        found: dict[str, Any] = json.loads(file.with_name(FILE).read_text())
        is_decided = found["verdict"] != Verdict.INFRASTRUCTURE
        known = found[KEY]
    except (OSError, ValueError, LookupError, TypeError):  # there is none, or it is damaged
        return None
    wanted = key(params, problem, target, kernel)
    return found if is_decided and wanted and known == wanted else None
