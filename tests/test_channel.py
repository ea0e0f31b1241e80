"""Asking models over real HTTP, through litellm: what comes, what it costs, what happens when it does not come."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from kernel_scientist.records.errors import BudgetError, ModelError, SetupError, StoppedError
from kernel_scientist.records.params import Budget, Llm, Model, Rates, Role
from kernel_scientist.scientist.llm import prices
from kernel_scientist.scientist.llm.budget import Ledger
from kernel_scientist.scientist.llm.client import Channel
from kernel_scientist.scientist.llm.parsing import Answer, ReplyError
from kernel_scientist.scientist.llm.reply_store import Archive, Message
from kernel_scientist.scientist.prompts import Prompt
from kernel_scientist.tracking import run_content
from tests.modelserver import ModelServer, Reaction, Script, serving

PRICE = Rates(input_usd=2.0, output_usd=10.0)
PROMPT = Prompt((Message(role="user", content="say something"),), "digest")
COST = (1000 * 2.0 + 200 * 10.0) / 1e6
Asked = Callable[..., tuple[Any, Any]]


def channel(
    server: ModelServer, folder: Path, budget: Budget | None = None, campaign: str = "c1", **llm: Any
) -> Channel:
    writer = {"model": "openai/scripted", "api_base": server.address, "price": PRICE, "max_tokens": 1000}
    role = Role.model_validate({**writer, **llm.pop("writer", {})})
    settings = {"attempts": 3, "first_delay_s": 0.01, "longest_delay_s": 0.5, "timeout_s": 3, **llm}
    archive = Archive(folder)
    paid = archive.paid_by(campaign)
    ledger = Ledger(budget or Budget(), sum(r.usd for r in paid))
    return Channel(Llm.model_validate({"writer": role, **settings}), archive, ledger, campaign, threading.Event())


def text(answer: Answer) -> str:
    if "bad" in answer.text:
        raise ReplyError("it is bad")
    return answer.text


def ask(it: Channel, place: str = "write/k00001", sample: int = 0) -> tuple[str, Any]:
    return it.ask("writer", place, PROMPT, text, sample=sample)


def always(reaction: Reaction) -> Script:
    return lambda request, number: reaction


def first(*reactions: Reaction) -> Script:
    return lambda request, number: reactions[min(number, len(reactions)) - 1]


def test_a_reply_is_paid_once_and_kept(tmp_path: Path) -> None:
    with serving(always(Reaction("hello"))) as server:
        it = channel(server, tmp_path)
        answer, asks = ask(it)
        again, later = ask(channel(server, tmp_path, campaign="c2"))
        assert answer == again == "hello"
        assert [a.usd for a in asks] == [COST] and not asks[0].recalled
        assert later[0].recalled and len(server.requests) == 1
        assert it.ledger.usd == pytest.approx(COST)
        assert sum(r.usd for r in it.archive.paid_by("c1")) == pytest.approx(COST)
        assert it.archive.paid_by("c2") == []
        ask(it, sample=1)
        assert len(server.requests) == 2


def test_what_is_sent_is_what_was_set(tmp_path: Path) -> None:
    with serving(always(Reaction("x"))) as server:
        ask(channel(server, tmp_path, writer={"temperature": 0.1}))
        request = server.requests[0]
        assert request["model"] == "scripted" and request["temperature"] == 0.1 and request["max_tokens"] == 1000
        assert request["messages"] == [{"role": "user", "content": "say something"}]


@pytest.mark.parametrize(
    "trouble",
    [
        Reaction(status=429, headers={"Retry-After": "0.2"}),
        Reaction(status=500),
        Reaction(status=503),
        Reaction("half of i", drop_after=4),
    ],
    ids=["429", "500", "503", "dropped"],
)
def test_what_passes_is_tried_again(trouble: Reaction, tmp_path: Path) -> None:
    with serving(first(trouble, Reaction("there"))) as server:
        start = time.monotonic()
        assert ask(channel(server, tmp_path))[0] == "there"
        assert len(server.requests) == 2
        if trouble.headers:
            assert time.monotonic() - start >= 0.2


@pytest.mark.parametrize("slow", [Reaction(hang=True), Reaction("x" * 4000, drip_s=0.2)], ids=["hang", "drip"])
def test_a_call_has_an_end(slow: Reaction, tmp_path: Path) -> None:
    with serving(always(slow)) as server:
        start = time.monotonic()
        with pytest.raises(ModelError, match="no model answers"):
            ask(channel(server, tmp_path, timeout_s=1, attempts=2))
        assert len(server.requests) == 2 and time.monotonic() - start < 15


def test_what_is_refused_is_not_tried_again(tmp_path: Path) -> None:
    with serving(always(Reaction("no such thing", status=400))) as server:
        with pytest.raises(ModelError, match="no such thing"):
            ask(channel(server, tmp_path))
        assert len(server.requests) == 1
    with serving(always(Reaction("who are you", status=401))) as server, pytest.raises(SetupError, match="refuses"):
        ask(channel(server, tmp_path))


def test_fallbacks_are_asked_in_order_and_the_breaker_spares_the_broken(tmp_path: Path) -> None:
    def script(request: dict[str, Any], number: int) -> Reaction:
        return Reaction("from the second") if request["model"] == "second" else Reaction(status=500)

    with serving(script) as server:
        second = Model(model="openai/second", api_base=server.address, price=PRICE)
        it = channel(server, tmp_path, writer={"fallbacks": (second,)}, break_after=3, rest_s=60)
        assert ask(it)[0] == "from the second"
        asked = [r["model"] for r in server.requests]
        assert asked == ["scripted"] * 3 + ["second"]
        ask(it, "write/k00002", sample=1)
        assert [r["model"] for r in server.requests[4:]] == ["second"]


def test_calls_are_shared_by_weight(tmp_path: Path) -> None:
    with serving(always(Reaction("x"))) as server:
        other = Model(model="openai/other", api_base=server.address, price=PRICE, weight=3)
        it = channel(server, tmp_path, writer={"mix": (other,)})
        for n in range(40):
            ask(it, f"write/k{n:05d}", sample=n)
        share = sum(r["model"] == "other" for r in server.requests)
        assert 20 < share < 40


def test_the_budget_stops_before_the_call(tmp_path: Path) -> None:
    with serving(always(Reaction("x"))) as server:
        it = channel(server, tmp_path, Budget(usd=0.02), writer={"max_tokens": 1000})
        with pytest.raises(BudgetError, match=r"budget\.usd"):
            for n in range(20):
                ask(it, f"write/k{n:05d}", sample=n)
        assert len(server.requests) == 3 and it.ledger.usd == pytest.approx(3 * COST)
        with pytest.raises(BudgetError, match=r"budget\.tokens"):
            ask(channel(server, tmp_path, Budget(tokens=500), campaign="c3"), sample=99)
        assert len(server.requests) == 3


def test_what_broke_off_is_counted_as_paid(tmp_path: Path) -> None:
    with serving(always(Reaction("x" * 3000, drop_after=2000))) as server:
        it = channel(server, tmp_path, attempts=1)
        with pytest.raises(ModelError):
            ask(it)
        (reply,) = it.archive.paid_by("c1")
        assert reply.failure and reply.usd > 0 and it.ledger.usd == pytest.approx(reply.usd)
        assert server.requests and ask_again_pays(server, tmp_path)


def ask_again_pays(server: ModelServer, folder: Path) -> bool:
    """What broke off is no answer: it is asked again."""
    server.script = always(Reaction("whole"))
    return ask(channel(server, folder))[0] == "whole"


def test_what_cannot_be_read_goes_back_with_the_reason(tmp_path: Path) -> None:
    with serving(first(Reaction("bad"), Reaction(""), Reaction("good"))) as server:
        answer, asks = ask(channel(server, tmp_path))
        assert answer == "good" and [bool(a.fault) for a in asks] == [True, True, False]
        kept = Archive(tmp_path).paid_by("c1")
        assert [bool(r.fault) for r in kept] == [True, True, False]
        assert run_content.spending(kept)["llm.unreadable_rate.writer"] == pytest.approx(2 / 3)
        last = server.requests[-1]["messages"]
        assert [m["role"] for m in last] == ["user", "assistant", "user", "assistant", "user"]
        assert "it is bad" in last[2]["content"] and "empty" in last[4]["content"]
    with serving(always(Reaction("bad"))) as server:
        with pytest.raises(ReplyError) as failed:
            ask(channel(server, tmp_path / "other", corrections=1))
        assert len(server.requests) == 2 and len(failed.value.asks) == 2


class Form(BaseModel):
    """What is wanted."""

    best: int


def test_a_model_that_takes_a_schema_is_told_it(tmp_path: Path) -> None:
    with serving(always(Reaction('{"best": 2}'))) as server:
        for number, structured in enumerate((None, True)):
            it = channel(server, tmp_path, writer={"structured": structured})
            it.ask("writer", f"write/k{number}", PROMPT, text, form=Form)
        plain, told = server.requests
        assert "response_format" not in plain
        assert told["response_format"]["json_schema"]["schema"]["properties"]["best"] == {
            "title": "Best",
            "type": "integer",
        }
        it.ask("writer", "write/k3", PROMPT, text)
        assert len(server.requests) == 2  # asked without a form that is another question, and was answered


def test_the_preferred_model_of_a_mix_is_asked(tmp_path: Path) -> None:
    with serving(always(Reaction("x"))) as server:
        other = {"model": "openai/other", "api_base": server.address, "price": PRICE}
        it = channel(server, tmp_path, writer={"mix": [other]})
        asked = [it.ask("writer", f"write/k{n}", PROMPT, text, prefer="openai/other")[1][0].model for n in range(4)]
        assert asked == ["openai/other"] * 4
        drawn = {it.ask("writer", f"write/k{n}", PROMPT, text, sample=n)[1][0].model for n in range(4, 16)}
        assert drawn == {"openai/other", "openai/scripted"}


def test_a_recorded_campaign_answers_by_place_when_prompts_differ(tmp_path: Path) -> None:
    with serving(always(Reaction("as then"))) as server:
        ask(channel(server, tmp_path))
    other = Prompt((Message(role="user", content="say something else"),), "digest")
    with serving(always(Reaction(status=500))) as server:
        it = channel(server, tmp_path, campaign="c2", replay="c1")
        answer, asks = it.ask("writer", "write/k00001", other, text)
        assert answer == "as then" and asks[0].recalled and not server.requests


def test_a_resumed_campaign_recalls_by_place_what_was_asked_elsewhere_in_the_same_words(tmp_path: Path) -> None:
    """After a kill a generation may be designed again in the words of the one after it: what it had counts."""
    other = Prompt((Message(role="user", content="say something else"),), "digest")
    with serving(first(Reaction("second generation"), Reaction("third generation"))) as server:
        it = channel(server, tmp_path)
        assert it.ask("writer", "design/2", PROMPT, text)[0] == "second generation"
        assert it.ask("writer", "design/3", other, text)[0] == "third generation"
        resumed = channel(server, tmp_path)
        assert resumed.ask("writer", "design/2", other, text)[0] == "second generation"
        assert resumed.ask("writer", "design/3", other, text)[0] == "third generation"
        assert len(server.requests) == 2


def test_stopping_does_not_wait_for_a_model(tmp_path: Path) -> None:
    with serving(always(Reaction(hang=True))) as server:
        it = channel(server, tmp_path, timeout_s=60)
        threading.Timer(0.5, it.stopped.set).start()
        start = time.monotonic()
        with pytest.raises(StoppedError):
            ask(it)
        assert time.monotonic() - start < 5


def test_prices_are_known_before_or_refused() -> None:
    assert prices.price(Model(model="openai/gpt-4o")).output_usd > 0
    assert prices.price(Model(model="ollama/llama3")) == prices.FREE
    assert prices.price(Model(model="openai/x", api_base="http://192.168.1.5:8000/v1")) == prices.FREE
    assert prices.price(Model(model="x", price=PRICE)).input_usd == 2.0
    for unknown in (Model(model="openai/no-such-model"), Model(model="x/y", api_base="https://example.com/v1")):
        with pytest.raises(SetupError, match="price"):
            prices.price(unknown)


def test_no_key_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("LAB_KEY", "sk-very-secret")
    with serving(always(Reaction("x"))) as server:
        ask(channel(server, tmp_path, writer={"api_key_env": "LAB_KEY"}))
        ask(channel(server, tmp_path, campaign="c2"), sample=1)
        assert "sk-very-secret" in server.headers[0]["Authorization"]
        assert "somebody" not in server.headers[1]["Authorization"]  # a key goes only where it was meant for
    assert not any("sk-very-secret" in f.read_text() for f in tmp_path.rglob("*.json"))
