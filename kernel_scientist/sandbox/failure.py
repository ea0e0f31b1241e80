"""The failure of a kernel: an exception, which the evaluator turns into a verdict."""

from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Verdict

EVIDENCE = 8000
"""Characters of a piece of evidence that are kept: part of it may come from a worker."""


class KernelFailure(Exception):
    """A kernel failed inside its worker. The evaluator catches it and makes a verdict of it."""

    def __init__(self, verdict: Verdict, reason: str, evidence: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.verdict, self.reason, self.evidence = verdict, reason, evidence


def failed(failure: KernelFailure, so_far: Evaluation) -> Evaluation:
    """Return the evaluation of a kernel that failed at this step."""
    return so_far.model_copy(
        update={
            "verdict": failure.verdict,
            "reason": printable(failure.reason),
            "evidence": (*so_far.evidence, *(printable(e)[:EVIDENCE] for e in failure.evidence if e)),
            "timings": (),
            "speedups": (),
        }
    )


def printable(value: object) -> str:
    """Return a worker's text with half characters, which cannot be written, escaped."""
    return str(value).encode("utf-8", "backslashreplace").decode()
