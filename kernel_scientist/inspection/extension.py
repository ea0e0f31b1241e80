"""The HIP or CUDA that a submission hands to torch's extension builder, compiled for a GPU that is not there."""

from kernel_scientist.inspection.inspector import Inspection
from kernel_scientist.records import CompileReport


def compiled(found: Inspection, timeout_s: float) -> CompileReport:
    """Return the report of a submission with what its extensions compile to."""
    return found.report
