"""How a kernel fails: a value in the end, an exception on the way to where a verdict is made."""

from kernel_scientist.records import Verdict


class KernelFailure(Exception):
    """A kernel failed inside its worker. Caught where a verdict is made; never leaves the harness."""

    def __init__(self, verdict: Verdict, reason: str, evidence: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.verdict, self.reason, self.evidence = verdict, reason, evidence
