"""A flow that asks a person, on a real Prefect server."""

import re
from dataclasses import dataclass
from threading import Event, Thread, Timer
from typing import Any

import pytest
from prefect import flow
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.promotion import question
from kernel_scientist.records.approval import Approval, Promotion
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.records.params import Params
from tasks import approval
from tests import results
from tests.flows.service import ask, until

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00"


@dataclass
class Context:
    """The part of an evaluation context that is asked for."""

    params: Params
    stopped: Event


@flow(name="asks")
def asks(approval_wait_s: float, stop_after_s: float | None = None) -> str:
    validate, stopped = {"approval": True, "approval_wait_s": approval_wait_s}, Event()
    if stop_after_s is not None:
        Timer(stop_after_s, stopped.set).start()
    context = Context(Params.model_validate({"validate": validate}), stopped)
    found = approval.ask(context, "Promote k00001?")  # type: ignore[arg-type]
    return f"{found.refusal}|{re.sub(TIME, 'AT', str(found))}"


@pytest.mark.parametrize(
    ("answer", "refusal", "told"),
    [
        ({"approve": True}, "", "approved by a person who gave no name, AT"),
        ({"approve": True, "name": "Ada", "comment": "good\nwork"}, "", "approved by Ada, AT: good work"),
        ({"approve": False}, "refused by a person", "refused by a person who gave no name, AT"),
        (
            {"approve": False, "comment": "not this week"},
            "refused by a person: not this week",
            "refused by a person who gave no name, AT: not this week",
        ),
        (
            {"approve": False, "name": "Ada", "comment": "not this week"},
            "refused by Ada: not this week",
            "refused by Ada, AT: not this week",
        ),
        (None, "nobody answered in 1 s", "nobody answered in 1 s"),
    ],
)
def test_the_answer_decides_and_is_told_with_name_time_and_comment(
    answer: Any, refusal: str, told: str, prefect_api: str
) -> None:
    def resume() -> None:
        asking = {"flows": {"name": {"any_": ["asks"]}}, "flow_runs": {"state": {"type": {"any_": ["PAUSED"]}}}}
        run = until(lambda: ask(prefect_api, "POST", "flow_runs/filter", asking), "the flow asks")[0]
        ask(prefect_api, "POST", f"flow_runs/{run['id']}/resume", {"run_input": answer})

    with temporary_settings({PREFECT_API_URL: prefect_api}):
        if answer:
            Thread(target=resume, daemon=True).start()
        state = asks(600 if answer else 1, return_state=True)
    assert state.is_completed() and state.result() == f"{refusal}|{told}"


def test_a_flow_that_waits_for_an_answer_can_be_stopped(prefect_api: str) -> None:
    with temporary_settings({PREFECT_API_URL: prefect_api}):
        state = asks(600, stop_after_s=1.0, return_state=True)
    assert state.is_failed() and "stopped by a signal" in str(state.message)


RESULT = results.campaign(
    campaign="c",
    problem="identity",
    target="cpu",
    speedup=2.0,
    interval=(1.9, 2.1),
    status="confirmed",
    why="faster than k00001 on public and held-out cases",
)


@pytest.mark.parametrize(
    ("reason", "promoted", "version", "asked"),
    [
        ("no other", True, "", "Promote k00002 of c (seed)?"),
        ("no other", True, "version 1 of m", "Promote k00002 of c (seed) and register it as version 1 of m?"),
        (
            "0.6x [0.5, 0.7] its speed",
            False,
            "version 2 of m",
            "Register k00002 of c (seed) as version 2 of m? (not promoted: 0.6x [0.5, 0.7] its speed)",
        ),
    ],
)
def test_the_question_is_about_what_will_happen(reason: str, promoted: bool, version: str, asked: str) -> None:
    kernel = Kernel(name="k00002", language="cpp", source="")
    text = question(RESULT, kernel, Promotion(promoted, bool(version), reason), version)
    assert text.splitlines()[0] == asked
    assert "- identity in cpp on cpu: 2x [1.9, 2.1] the reference's speed" in text
    assert "- confirmed: faster than k00001" in text


ADA = Approval(by="Ada", at="2026-11-27 10:00:00+00:00")
OVERTAKEN = "not promoted: another champion was promoted while this one waited for approval"


def test_an_overtaken_champion_loses_its_promotion_only() -> None:
    asked = Promotion(promoted=True, registered=True, reason="no other")
    assert asked.after(ADA, overtaken=False) == asked
    assert asked.after(ADA, overtaken=True) == Promotion(False, True, OVERTAKEN)
    assert str(ADA).startswith("approved by Ada"), "what a person answered is not changed by what others do"


def test_a_registration_alone_is_not_overtaken() -> None:
    asked = Promotion(promoted=False, registered=True, reason="0.6x [0.5, 0.7] its speed")
    assert asked.after(ADA, overtaken=True) == asked


@pytest.mark.parametrize("overtaken", [False, True])
def test_a_refusal_forbids_both(overtaken: bool) -> None:
    refused = ADA.model_copy(update={"refusal": "refused by Ada"})
    after = Promotion(True, True, "no other").after(refused, overtaken)
    assert after == Promotion(False, False, "not promoted: refused by Ada")
