"""Ask a person: the flow run pauses, and its page in the Prefect UI shows a form.

Prefect's `pause_flow_run` fails the run when nobody answers in time. Here that is an answer, too, so the server's own
deadline is set later than ours.
"""

import threading
import time
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import State
from prefect.exceptions import ObjectNotFound
from prefect.input import RunInput, keyset_from_paused_state
from prefect.runtime import flow_run
from prefect.states import Paused, Running
from pydantic import Field

from kernel_scientist.campaign.bench import Bench
from kernel_scientist.records.approval import Approval
from kernel_scientist.records.errors import StoppedError
from kernel_scientist.records.kernel import digest
from tasks import AWAY

POLL_S = 2.0
"""Interval at which the server is asked for the answer, in seconds."""
LATER_S = 600
"""How much later than we the server would give up, in seconds."""


class Decision(RunInput):
    """The form."""

    approve: bool = Field(default=False, description="Do what the question says; off: refuse.")
    name: str = Field(default="", description="Who decides; recorded with the decision.")
    comment: str = Field(default="", description="Recorded with the decision.")


def ask(bench: Bench, question: str) -> Approval:
    """Return a person's decision; a refusal if nobody answers in time, an approval if no one is to be asked.

    No device is locked meanwhile: only timings hold the lock.
    """
    settings = bench.params.validate_
    if not settings.approval:
        return Approval()
    answer = _answer(question, settings.approval_wait_s, bench.stopped)
    if answer is None:
        return Approval(refusal=f"nobody answered in {settings.approval_wait_s:g} s")
    by, comment = (" ".join(text.split())[:500] for text in (answer.name, answer.comment))
    refusal = "" if answer.approve else f"refused by {by or 'a person'}{comment and f': {comment}'}"
    return Approval(refusal=refusal, by=by, at=datetime.now(UTC).isoformat(" ", "seconds"), comment=comment)


def _answer(question: str, wait_s: float, stopped: threading.Event) -> Decision | None:
    """Pause the flow run until it is resumed with an answer; None if that takes longer than `wait_s`.

    Raises StoppedError when the run is cancelled meanwhile, or `stopped` is set.
    """
    form, run = Decision.with_initial_data(description=question, approve=False), UUID(str(flow_run.get_id()))
    paused = Paused(timeout_seconds=int(wait_s) + LATER_S, pause_key=digest(question)[:8])
    keyset = keyset_from_paused_state(paused)
    paused.state_details.run_input_keyset = {str(key): value for key, value in keyset.items()}
    with get_client(sync_client=True) as client:
        form.save(keyset, flow_run_id=run)
        client.set_flow_run_state(run, paused)
        until = time.monotonic() + wait_s
        while (state := _state(client, run)) is not None and state.is_paused():
            if time.monotonic() > until:
                client.set_flow_run_state(run, Running(), force=True)
                return None
            if stopped.wait(POLL_S):
                raise StoppedError("stopped by a signal")
        if state is None or not state.is_running():
            raise StoppedError("the flow run was cancelled while it waited for approval")
        return cast(Decision, form.load(keyset, flow_run_id=run))  # its type allows a coroutine, as in async code


def _state(client: SyncPrefectClient, run: UUID) -> State[Any] | None:
    """Return the flow run's state, Paused while the server does not answer; None if there is no such run."""
    try:
        return client.read_flow_run(run).state
    except ObjectNotFound:
        return None
    except AWAY:
        return Paused()
