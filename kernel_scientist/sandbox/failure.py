"""How a kernel fails: a value in the end, an exception on the way to where a verdict is made."""

from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Verdict

EVIDENCE = 8000
"""Characters of a piece of evidence that are kept: part of it may be a worker's own words."""


class KernelFailure(Exception):
    """A kernel failed inside its worker. Caught where a verdict is made; never leaves the harness."""

    def __init__(self, verdict: Verdict, reason: str, evidence: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.verdict, self.reason, self.evidence = verdict, reason, evidence


class Disagreement(KernelFailure):
    """Clocks that do not agree. On a busy machine that can be chance: it counts when it comes again."""


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
    """Return a worker's words without what cannot be written (half characters)."""
    return str(value).encode("utf-8", "backslashreplace").decode()
