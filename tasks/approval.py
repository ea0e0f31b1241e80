"""Ask a person: the flow run pauses, and its page in the Prefect UI shows a form."""

import math

from prefect.client.orchestration import get_client
from prefect.exceptions import FlowPauseTimeout
from prefect.flow_runs import pause_flow_run
from prefect.input import RunInput
from prefect.runtime import flow_run
from prefect.states import Running
from pydantic import Field

from kernel_scientist.campaign.evaluation_context import EvaluationContext

POLL_S = 5
"""Interval at which the server is asked for the answer, in seconds."""


class Decision(RunInput):
    """The form."""

    approve: bool = Field(default=False, description="Promote or submit the kernel; off: refuse.")
    comment: str = Field(default="", description="Recorded with the decision.")


def ask(context: EvaluationContext, question: str) -> str:
    """Return why a person refused, or that nobody answered in time; empty if it was approved, or no one is to be asked.

    No device is locked meanwhile: only timings hold the lock.
    """
    settings = context.params.validate_
    if not settings.approval:
        return ""
    form = Decision.with_initial_data(description=question, approve=False)
    try:
        answer = pause_flow_run(wait_for_input=form, timeout=math.ceil(settings.approval_wait_s), poll_interval=POLL_S)
    except FlowPauseTimeout:
        _go_on()
        return f"nobody answered in {settings.approval_wait_s:g} s"
    if answer.approve:
        return ""
    return f"refused by a person: {answer.comment}" if answer.comment else "refused by a person"


def _go_on() -> None:
    """Let the flow run end as usual: the server would turn every state that follows a late answer into Failed."""
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(str(flow_run.get_id()), Running(), force=True)  # type: ignore[arg-type]
