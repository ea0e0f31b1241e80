"""The failure of a kernel: an exception, which the evaluator turns into a verdict."""

from collections.abc import Generator
from contextlib import contextmanager

from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Verdict

EVIDENCE = 8000
"""Most characters kept of a piece of evidence, which may come from a worker."""


class KernelFailure(Exception):
    """Failure of a kernel. The evaluator catches it and turns it into a verdict."""

    def __init__(self, verdict: Verdict, reason: str, evidence: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.verdict, self.reason, self.evidence = verdict, reason, evidence
        self.untimed = False
        """Whether no timed case took part (`Evaluation.failed_untimed`)."""


@contextmanager
def noted(untimed: bool) -> Generator[None]:
    """Note of a failure within whether no timed case took part."""
    try:
        yield
    except KernelFailure as failure:
        failure.untimed = untimed
        raise


def failed(failure: KernelFailure, so_far: Evaluation) -> Evaluation:
    """Return the evaluation of a kernel that failed, with the failure's verdict and reason."""
    return so_far.model_copy(
        update={
            "verdict": failure.verdict,
            "reason": printable(failure.reason),
            "failed_untimed": failure.untimed,
            "evidence": (*so_far.evidence, *(printable(e)[:EVIDENCE] for e in failure.evidence if e)),
            "timings": (),
            "speedups": (),
        }
    )


def printable(value: object) -> str:
    """Return a worker's text with lone surrogates escaped, because they cannot be encoded."""
    return str(value).encode("utf-8", "backslashreplace").decode()
