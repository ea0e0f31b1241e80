"""Arguments that several tools have, as a model reads them."""

from typing import Annotated

from mcp.types import ToolAnnotations
from pydantic import Field

ProblemName = Annotated[str, Field(description="Name of the problem, as `problems` lists it.")]
Source = Annotated[str, Field(description="The whole text of the kernel's Python file; or give `file`.")]
File = Annotated[str, Field(description="Path of the kernel's file instead of `source` (over stdio only).")]
TargetName = Annotated[
    str | None,
    Field(description="cpu, cuda, rocm, model:mi300x (executed on the CPU, times predicted); default: the server's."),
]
ReadOnly = ToolAnnotations(readOnlyHint=True, openWorldHint=False)
