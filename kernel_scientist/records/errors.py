"""Exceptions: the system or its set-up is broken. A kernel's failure is a value (`records.Verdict`), none of these."""


class SetupError(Exception):
    """The call, the parameters or this machine's set-up is wrong: one sentence for the user, exit code 2."""


class InfrastructureError(Exception):
    """Something other than the kernel failed and may pass next time (a busy device, a worker that did not start)."""


class StoppedError(Exception):
    """The work was stopped on purpose while this was in hand; it says nothing about the kernel."""


class DeviceBusyError(InfrastructureError):
    """The device's lock could not be had in time."""


class BudgetError(Exception):
    """The next call of a model could pass the campaign's budget; it was not made."""


class ModelError(Exception):
    """No model of a role answers, its fallbacks included; what was asked can be asked again later."""
