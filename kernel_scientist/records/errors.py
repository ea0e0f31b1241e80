"""Exceptions of the system and its set-up. A kernel's failure is not among them: it is a value (`Verdict`)."""


def one_line(error: BaseException) -> str:
    """Return an exception's message on one line, at most 300 characters."""
    return " ".join(str(error).split())[:300]


class SetupError(Exception):
    """The call, the parameters or this machine's set-up is wrong: one sentence for the user, exit code 2."""


class InfrastructureError(Exception):
    """Something other than the kernel failed and may pass next time (a busy device, a worker that did not start)."""


class StoppedError(Exception):
    """The work was stopped on purpose; no conclusion about the kernel is possible."""


class BesideError(InfrastructureError):
    """A source that was timed beside the candidate failed, not the candidate."""

    def __init__(self, source: str, reason: str) -> None:
        """`source`: its name."""
        super().__init__(f"{source} failed while it was timed: {reason}")
        self.source, self.reason = source, reason


class DeviceBusyError(InfrastructureError):
    """Others hold the device's lock, and nothing moved for as long as a wait may last."""


class BudgetError(Exception):
    """The next call of a model could pass the campaign's budget; it was not made."""


NO_REPLY = "no model replies"
"""What the message of each ModelError says."""


class ModelError(Exception):
    """No model of a role answers, fallbacks included.

    `may_pass`: whether one may answer when it is asked later: not if all refused the request itself.
    """

    def __init__(self, message: str, may_pass: bool = True) -> None:
        super().__init__(message)
        self.may_pass = may_pass
