"""What `compat=official` does to a kernel's inputs, in the words of a failure."""

from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox.failure import KernelFailure


def explained(failure: KernelFailure, problem: Problem) -> KernelFailure:
    """Return a failure whose reason says which of the inputs are texts there although they look like booleans."""
    names = problem.boolean_texts
    if not names or failure.verdict not in (Verdict.CRASHED, Verdict.INCORRECT):
        return failure
    said = f"with compat=official booleans of task.yml are texts, 'True' or 'False': {', '.join(names)}"
    explained = KernelFailure(failure.verdict, f"{failure.reason} ({said})", failure.evidence)
    explained.untimed = failure.untimed
    return explained
