"""Arguments that several tools have, as a model reads them."""

import re
from typing import Annotated

from mcp.types import ToolAnnotations
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from kernel_scientist.records.params import REMOTE_TARGETS

ProblemName = Annotated[str, Field(description="Name of the problem, as `problems` lists it.")]
Source = Annotated[str, Field(description="The whole text of the kernel's Python file; or give `file`.")]
File = Annotated[str, Field(description="Path of the kernel's file instead of `source` (over stdio only).")]


def _without_leaderboard(target: str | None) -> str | None:
    """Only who starts the server may have kernels submitted to a public leaderboard."""
    if target is not None and not re.fullmatch(
        rf"auto|cpu|cuda|rocm|({'|'.join(('model', *REMOTE_TARGETS))}):.+", target
    ):
        elsewhere = " or ".join(f"{prefix}:" for prefix in REMOTE_TARGETS)
        known = f"auto, cpu, cuda, rocm, model: with a machine (model:mi300x), or {elsewhere} with a name"
        raise PydanticCustomError("target", "expected {known}", {"known": known})
    return target


TargetName = Annotated[
    str | None,
    AfterValidator(_without_leaderboard),
    Field(description="cpu, cuda, rocm, model:mi300x (executed on the CPU, times predicted); default: the server's."),
]
ReadOnly = ToolAnnotations(readOnlyHint=True, openWorldHint=False)
