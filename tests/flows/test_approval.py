"""A flow that asks a person, on a real Prefect server."""

from dataclasses import dataclass, field
from threading import Thread
from typing import Any

import httpx
import pytest
from prefect import flow
from prefect.settings import PREFECT_API_URL, temporary_settings

from kernel_scientist.records.params import Params
from tasks import approval
from tests.flows.service import until


@dataclass
class Context:
    """The part of an evaluation context that is asked for."""

    params: Params = field(default_factory=Params)


@flow(name="asks")
def asks(approval_wait_s: float) -> str:
    validate = {"approval": True, "approval_wait_s": approval_wait_s}
    return approval.ask(Context(Params.model_validate({"validate": validate})), "Promote k00001?")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        ({"approve": True}, ""),
        ({"approve": False}, "refused by a person"),
        ({"approve": False, "comment": "not this week"}, "refused by a person: not this week"),
        (None, "nobody answered in 1 s"),
    ],
)
def test_the_answer_decides_and_the_run_completes(answer: Any, refusal: str, prefect_api: str) -> None:
    def resume() -> None:
        asking = {"flows": {"name": {"any_": ["asks"]}}, "flow_runs": {"state": {"type": {"any_": ["PAUSED"]}}}}
        run = until(lambda: httpx.post(f"{prefect_api}/flow_runs/filter", json=asking).json(), "the flow asks")[0]
        httpx.post(f"{prefect_api}/flow_runs/{run['id']}/resume", json={"run_input": answer}).raise_for_status()

    with temporary_settings({PREFECT_API_URL: prefect_api}):
        if answer:
            Thread(target=resume, daemon=True).start()
        state = asks(600 if answer else 1, return_state=True)
    assert state.is_completed() and state.result() == refusal
