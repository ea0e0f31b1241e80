"""The result of `compile`: a submission's code objects for a GPU that need not be present, and what they launch."""

from collections.abc import Sequence

from pydantic import Field

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.evaluation import CompileReport
from kernel_scientist.records.gpu import CodeObject, Launch
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.results import PredictedCase


class LaunchedCode(CodeObject):
    """A code object as a submission launches it with one grid; its instructions per depth of loops are left out."""

    cases: tuple[str, ...] = ()
    """Names of the cases in which it is launched so."""
    grid: tuple[int, int, int] | None = None
    """Workgroups in x, y and z; None for a kernel that was compiled alone."""
    num_stages: int = 0
    """Triton's `num_stages`."""
    scalars: dict[str, str] = Field(default_factory=dict)
    """Its other numbers, such as sizes and strides, in the first of these cases."""
    autotuned: int = 0
    """Number of autotuner configurations to which this one belongs; 0 without autotuning."""
    mix: tuple[dict[str, int], ...] = Field(default=(), exclude=True)
    """Always empty."""


class CompilationResult(Record):
    """The result of `compile`."""

    ok: bool
    """Whether something compiles that the GPU would start."""
    verdict: Verdict | None = None
    """Why nothing does: a fault of the kernel, or `infrastructure` if this machine lacks what it needs; None if it was
    compiled, or if nothing was said."""
    reason: str = ""
    """Why it is not ok, in a sentence."""
    tried: tuple[str, ...] = ()
    """What was tried before it was refused, or before it was compiled for no problem, each with its reason."""
    problem: str | None = None
    """The problem on whose cases it was called; None if it belongs to none."""
    machine: str = ""
    """Name of the GPU."""
    arch: str = ""
    """Its architecture."""
    compiler: str = ""
    """Compiler and version; empty if no compiler was reached."""
    seconds: Finite = 0.0
    """Wall time of the compilation."""
    launches: tuple[LaunchedCode, ...] = ()
    """The different launches, then the kernels that were compiled alone."""
    findings: tuple[str, ...] = ()
    """Remarks on the code for its GPU."""
    missed: tuple[str, ...] = ()
    """What could not be inspected without a GPU, with the reasons."""
    predicted: tuple[PredictedCase, ...] = ()
    """Predicted times; empty without a model of the GPU."""
    predicted_by: str = ""
    """Model and calibration in words; empty without a prediction."""
    assembly: tuple[str, ...] = ()
    """Files to which the assembly was written."""


def launched(report: CompileReport) -> tuple[LaunchedCode, ...]:
    """Return the different launches of a submission, each with its cases, then the kernels that were compiled alone."""
    groups: dict[tuple[object, ...], list[Launch]] = {}
    for launch in report.launches:
        groups.setdefault((launch.kernel, launch.code, launch.grid), []).append(launch)
    named = {launch.kernel for launch in report.launches}
    found = [_of(report.objects[same[0].code], same) for same in groups.values()]
    return (*found, *(_of(code, ()) for code in report.objects if code.kernel not in named))


def _of(code: CodeObject, same: Sequence[Launch]) -> LaunchedCode:
    """Return a code object with its launches that have one grid."""
    own = same[0].model_dump(exclude={"case", "code", "num_warps"}) if same else {}
    cases = tuple(dict.fromkeys(launch.case for launch in same))
    return LaunchedCode.model_validate({**code.model_dump(exclude={"mix"}), **own, "cases": cases})
