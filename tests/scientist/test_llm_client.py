"""Model calls over real HTTP through litellm: replies, costs, failures."""

import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from kernel_scientist.campaign.tally import Tally
from kernel_scientist.records.errors import BudgetError, ModelError, SetupError, StoppedError
from kernel_scientist.records.kernel import LlmCall
from kernel_scientist.records.params import Budget, Llm, Model, Rates, Writing
from kernel_scientist.scientist.llm import costs
from kernel_scientist.scientist.llm.client import CallSpec, LlmClient, Parser
from kernel_scientist.scientist.llm.costs import LlmBudget
from kernel_scientist.scientist.llm.parsing import ParsedReply, ReplyError
from kernel_scientist.scientist.llm.response_cache import LlmRequest, Reply, ResponseCache
from kernel_scientist.scientist.prompts import Message, Prompt
from kernel_scientist.tracking import run_content
from tests.scientist.model_server import ModelServer, Response, Script, serving

PRICE = Rates(input_usd=2.0, output_usd=10.0)
PROMPT = Prompt((Message(role="user", content="write something"),), "digest")
OTHER_PROMPT = Prompt((Message(role="user", content="write something else"),), "digest")
COST = (1000 * 2.0 + 200 * 10.0) / 1e6


def make_client(
    server: ModelServer, folder: Path, budget: Budget | None = None, campaign: str = "c1", **llm: Any
) -> LlmClient:
    writer = {"model": "openai/scripted", "api_base": server.address, "price": PRICE, "max_tokens": 1000}
    role = Writing.model_validate({**writer, **llm.pop("writer", {})})
    settings = {"attempts": 3, "first_delay_s": 0.01, "longest_delay_s": 0.5, "timeout_s": 30, **llm}
    cache = ResponseCache(folder)
    llm_budget = LlmBudget.of(cache, budget or Budget(), campaign)
    return LlmClient(Llm.model_validate({"writer": role, **settings}), cache, llm_budget, campaign, threading.Event())


def parse(reply: ParsedReply) -> str:
    if "bad" in reply.text:
        raise ReplyError("it is bad")
    return reply.text


def ask(
    client: LlmClient, key: str = "write/k00001", prompt: Prompt = PROMPT, parse: Parser[str] = parse, **spec: Any
) -> tuple[str, tuple[LlmCall, ...]]:
    return client.ask(CallSpec("writer", key, **spec), prompt, parse)


def always(response: Response) -> Script:
    return lambda request, number: response


def in_order(*responses: Response) -> Script:
    return lambda request, number: responses[min(number, len(responses)) - 1]


def test_a_reply_is_cached_and_paid_for_once(tmp_path: Path) -> None:
    with serving(always(Response("hello"))) as server:
        client = make_client(server, tmp_path)
        reply, calls = ask(client)
        again, later = ask(make_client(server, tmp_path, campaign="c2"))
        assert reply == again == "hello"
        assert [c.usd for c in calls] == [COST] and not calls[0].recalled
        assert later[0].recalled and len(server.requests) == 1
        assert client.budget.usd == pytest.approx(COST)
        assert sum(r.usd for r in client.cache.paid_by("c1")) == pytest.approx(COST)
        assert client.cache.paid_by("c2") == []
        ask(client, sample=1)
        assert len(server.requests) == 2


def test_the_request_has_the_parameters_of_the_role(tmp_path: Path) -> None:
    with serving(always(Response("x"))) as server:
        ask(make_client(server, tmp_path, writer={"temperature": 0.1}))
        request = server.requests[0]
        assert request["model"] == "scripted" and request["temperature"] == 0.1 and request["max_tokens"] == 1000
        assert request["messages"] == [{"role": "user", "content": "write something"}]


@pytest.mark.parametrize(
    "failure",
    [
        Response(status=429, headers={"Retry-After": "0.2"}),
        Response(status=500),
        Response(status=503),
        Response("half of i", drop_after=4),
    ],
    ids=["429", "500", "503", "dropped"],
)
def test_temporary_failures_are_retried(failure: Response, tmp_path: Path) -> None:
    with serving(in_order(failure, Response("there"))) as server:
        start = time.monotonic()
        assert ask(make_client(server, tmp_path))[0] == "there"
        assert len(server.requests) == 2
        if failure.headers:
            assert time.monotonic() - start >= 0.2


@pytest.mark.parametrize("slow", [Response(hang=True), Response("x" * 4000, drip_s=0.2)], ids=["hang", "drip"])
def test_a_call_has_a_time_limit(slow: Response, tmp_path: Path) -> None:
    with serving(always(slow)) as server:
        with pytest.raises(ModelError, match="no model replies"):
            ask(make_client(server, tmp_path, timeout_s=1, attempts=2))
        assert len(server.requests) == 2


def test_permanent_failures_are_not_retried(tmp_path: Path) -> None:
    with serving(always(Response("no such thing", status=400))) as server:
        with pytest.raises(ModelError, match="no such thing"):
            ask(make_client(server, tmp_path))
        assert len(server.requests) == 1
    with serving(always(Response("wrong key", status=401))) as server, pytest.raises(SetupError, match="refuses"):
        ask(make_client(server, tmp_path))


def test_fallbacks_are_called_in_order_and_the_breaker_stops_calls_to_a_failing_model(tmp_path: Path) -> None:
    def script(request: dict[str, Any], number: int) -> Response:
        return Response("from the second") if request["model"] == "second" else Response(status=500)

    with serving(script) as server:
        second = Model(model="openai/second", api_base=server.address, price=PRICE)
        client = make_client(server, tmp_path, writer={"fallbacks": (second,)}, break_after=3, rest_s=60)
        assert ask(client)[0] == "from the second"
        assert [r["model"] for r in server.requests] == ["scripted"] * 3 + ["second"]
        ask(client, "write/k00002", sample=1)
        assert [r["model"] for r in server.requests[4:]] == ["second"]


def test_calls_are_shared_by_weight(tmp_path: Path) -> None:
    with serving(always(Response("x"))) as server:
        other = Model(model="openai/other", api_base=server.address, price=PRICE, weight=3)
        client = make_client(server, tmp_path, writer={"mix": (other,)})
        for n in range(40):
            ask(client, f"write/k{n:05d}", sample=n)
        assert 20 < sum(r["model"] == "other" for r in server.requests) < 40


def test_the_budget_is_checked_before_the_call(tmp_path: Path) -> None:
    with serving(always(Response("x"))) as server:
        client = make_client(server, tmp_path, Budget(usd=0.02), writer={"max_tokens": 1000})
        with pytest.raises(BudgetError, match=r"budget\.usd"):
            for n in range(20):
                ask(client, f"write/k{n:05d}", sample=n)
        assert len(server.requests) == 3 and client.budget.usd == pytest.approx(3 * COST)
        with pytest.raises(BudgetError, match=r"budget\.tokens"):
            ask(make_client(server, tmp_path, Budget(tokens=500), campaign="c3"), sample=99)
        assert len(server.requests) == 3


def test_an_incomplete_reply_is_paid_for_and_not_reused(tmp_path: Path) -> None:
    with serving(always(Response("x" * 3000, drop_after=2000))) as server:
        client = make_client(server, tmp_path, attempts=1)
        with pytest.raises(ModelError):
            ask(client)
        (reply,) = client.cache.paid_by("c1")
        assert reply.failure and reply.usd > 0 and client.budget.usd == pytest.approx(reply.usd)
        server.script = always(Response("whole"))
        assert ask(make_client(server, tmp_path))[0] == "whole"


def test_an_unreadable_reply_is_sent_back_with_the_error(tmp_path: Path) -> None:
    with serving(in_order(Response("bad"), Response(""), Response("good"))) as server:
        reply, calls = ask(make_client(server, tmp_path))
        assert reply == "good" and [bool(c.fault) for c in calls] == [True, True, False]
        cache = ResponseCache(tmp_path)
        assert [bool(r.fault) for r in cache.paid_by("c1")] == [True, True, False]
        assert run_content.spending(cache.spending("c1"))["llm.unreadable_rate.writer"] == pytest.approx(2 / 3)
        messages = server.requests[-1]["messages"]
        assert [m["role"] for m in messages] == ["user", "assistant", "user", "assistant", "user"]
        assert "it is bad" in messages[2]["content"] and "empty" in messages[4]["content"]
    with serving(always(Response("bad"))) as server:
        with pytest.raises(ReplyError) as failed:
            ask(make_client(server, tmp_path / "other", corrections=1))
        assert len(server.requests) == 2 and len(failed.value.llm_calls) == 2


class Form(BaseModel):
    """A reply's type."""

    best: int


def test_a_model_that_takes_a_schema_gets_it(tmp_path: Path) -> None:
    with serving(always(Response('{"best": 2}'))) as server:
        for number, structured in enumerate((None, True)):
            client = make_client(server, tmp_path, writer={"structured": structured})
            ask(client, f"write/k{number}", form=Form)
        plain, structured_request = server.requests
        assert "response_format" not in plain
        schema = structured_request["response_format"]["json_schema"]["schema"]
        assert schema["properties"]["best"] == {"title": "Best", "type": "integer"}
        ask(client, "write/k3")
        assert len(server.requests) == 2  # without the schema it is the first request, whose reply is cached


def test_the_preferred_model_of_a_mix_is_called(tmp_path: Path) -> None:
    with serving(always(Response("x"))) as server:
        other = {"model": "openai/other", "api_base": server.address, "price": PRICE}
        client = make_client(server, tmp_path, writer={"mix": [other]})
        models = [ask(client, f"write/k{n}", prefer="openai/other")[1][0].model for n in range(4)]
        assert models == ["openai/other"] * 4
        assert {ask(client, f"write/k{n}", sample=n)[1][0].model for n in range(4, 16)} == {
            "openai/other",
            "openai/scripted",
        }


def test_a_replayed_campaign_reuses_replies_by_call_key_if_prompts_differ(tmp_path: Path) -> None:
    with serving(always(Response("recorded"))) as server:
        ask(make_client(server, tmp_path))
    with serving(always(Response(status=500))) as server:
        reply, calls = ask(make_client(server, tmp_path, campaign="c2", replay="c1"), prompt=OTHER_PROMPT)
        assert reply == "recorded" and calls[0].recalled and not server.requests


def test_a_resumed_campaign_looks_up_the_call_key_before_the_prompt(tmp_path: Path) -> None:
    """After a kill, a generation may be designed again with the prompt of the next one: its own reply is reused."""
    with serving(in_order(Response("second generation"), Response("third generation"))) as server:
        client = make_client(server, tmp_path)
        assert ask(client, "design/2")[0] == "second generation"
        assert ask(client, "design/3", OTHER_PROMPT)[0] == "third generation"
        resumed = make_client(server, tmp_path)
        assert ask(resumed, "design/2", OTHER_PROMPT)[0] == "second generation"
        assert ask(resumed, "design/3", OTHER_PROMPT)[0] == "third generation"
        assert len(server.requests) == 2


def test_equal_requests_in_flight_share_one_call(tmp_path: Path) -> None:
    with serving(always(Response("x" * 200, drip_s=0.02))) as server:
        client = make_client(server, tmp_path)
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda n: ask(client, f"select/{n}"), range(4)))
        assert len(server.requests) == 1 and len(client.cache.paid_by("c1")) == 1
        assert sum(not calls[0].recalled for _, calls in results) == 1
        assert client.budget.usd == pytest.approx(COST)
    with serving(always(Response(status=400))) as server:
        client = make_client(server, tmp_path, campaign="c2")
        with ThreadPoolExecutor(4) as pool:
            failed = [pool.submit(ask, client, f"design/{n}", OTHER_PROMPT) for n in range(4)]
        assert all(isinstance(f.exception(), ModelError) for f in failed) and not client._in_flight


def test_stopping_does_not_wait_for_a_model(tmp_path: Path) -> None:
    with serving(always(Response(hang=True))) as server:
        client = make_client(server, tmp_path, timeout_s=600)
        threading.Timer(0.5, client.stopped.set).start()
        start = time.monotonic()
        with pytest.raises(StoppedError):
            ask(client)
        assert time.monotonic() - start < 300, "half of what the model has"


def test_a_cache_written_by_an_older_version_is_read(tmp_path: Path) -> None:
    request = LlmRequest(model="m", parameters={}, messages=PROMPT.messages)
    file = tmp_path / request.key[:2] / f"{request.key}.json"
    file.parent.mkdir()
    values = {"question": request.model_dump(), "place": "write/k00001/0", "text": "x", "role": "writer"}
    file.write_text(json.dumps({**values, "campaign": "c1"}))
    (damaged := tmp_path / "ab" / "abc.json").parent.mkdir()
    damaged.write_text("{")
    for _ in range(2):
        cache = ResponseCache(tmp_path)
        reply = cache.get(request.key)
        assert reply is not None and reply.request == request and reply.call_key == "write/k00001/0"
        assert len(cache.paid_by("c1")) == 1 and damaged.exists()


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_file_that_is_linked_to_dvcs_cache_is_not_changed(tmp_path: Path, link: Callable[..., None]) -> None:
    request = LlmRequest(model="m", parameters={}, messages=PROMPT.messages)
    reply = Reply(request=request, text="x", role="writer", call_key="write/k00001/0", campaign="c1")
    first = ResponseCache(tmp_path / "first")
    first.add(reply)
    first._database.close()
    cached = tmp_path / "first" / "replies.sqlite"
    before = cached.read_bytes()
    cached.chmod(0o444)
    (tmp_path / "second").mkdir()
    link(cached, tmp_path / "second" / "replies.sqlite")
    second = ResponseCache(tmp_path / "second")
    second.add(reply.model_copy(update={"campaign": "c2"}))
    assert len(second.paid_by("c1")) == len(second.paid_by("c2")) == 1 and cached.read_bytes() == before


def test_a_price_is_known_or_an_error() -> None:
    assert costs.price(Model(model="openai/gpt-4o")).output_usd > 0
    assert costs.price(Model(model="ollama/llama3")) == costs.FREE
    assert costs.price(Model(model="openai/x", api_base="http://192.168.1.5:8000/v1")) == costs.FREE
    assert costs.price(Model(model="x", price=PRICE)).input_usd == 2.0
    for unknown in (Model(model="openai/no-such-model"), Model(model="x/y", api_base="https://example.com/v1")):
        with pytest.raises(SetupError, match="price"):
            costs.price(unknown)


def test_a_key_is_sent_only_to_its_endpoint_and_never_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("LAB_KEY", "sk-very-secret")
    with serving(always(Response("x"))) as server:
        ask(make_client(server, tmp_path, writer={"api_key_env": "LAB_KEY"}))
        ask(make_client(server, tmp_path, campaign="c2"), sample=1)
        assert "sk-very-secret" in server.headers[0]["Authorization"]
        assert "somebody" not in server.headers[1]["Authorization"]
    replies = [reply.model_dump_json() for name in ("c1", "c2") for reply in ResponseCache(tmp_path).paid_by(name)]
    assert len(replies) == 2 and not any("sk-very-secret" in text for text in replies)


def test_a_reply_that_was_cut_off_is_asked_for_again_with_more_tokens(tmp_path: Path) -> None:
    with serving(in_order(Response("bad", finish="length"), Response("good"))) as server:
        text, calls = ask(make_client(server, tmp_path))
    assert text == "good" and [one["max_tokens"] for one in server.requests] == [1000, 2000]
    assert server.requests[0]["messages"] == server.requests[1]["messages"], "not the cut reply and a complaint"
    assert "cut off at 1000 tokens (max_tokens)" in calls[0].fault and not calls[1].fault


def test_a_model_that_allows_no_longer_reply_ends_the_call_and_not_the_campaign(tmp_path: Path) -> None:
    responses = (Response("bad", finish="length"), Response("max_tokens is too large", status=400))
    with serving(in_order(*responses)) as server, pytest.raises(ReplyError, match="cut off at 1000 tokens") as caught:
        ask(make_client(server, tmp_path))
    assert len(caught.value.llm_calls) == 1


def test_a_reply_that_is_withheld_is_not_asked_for_again(tmp_path: Path) -> None:
    with (
        serving(always(Response("bad", finish="content_filter"))) as server,
        pytest.raises(ReplyError, match="withheld the reply"),
    ):
        ask(make_client(server, tmp_path))
    assert len(server.requests) == 1


def test_only_reasoning_is_told_from_an_empty_reply(tmp_path: Path) -> None:
    only = Response("", beside=({"reasoning_content": "What if ..."}, {"reasoning_content": " no."}))
    with serving(always(only)) as server, pytest.raises(ReplyError, match="only reasoning"):
        ask(make_client(server, tmp_path / "1"))
    with serving(always(Response(""))) as server, pytest.raises(ReplyError, match="empty"):
        ask(make_client(server, tmp_path / "2"))


def test_the_arguments_of_a_tool_stand_for_a_text_that_is_missing(tmp_path: Path) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "submit", "arguments": '{"source":'}}
    rest = {"index": 0, "function": {"arguments": ' "x"}'}}
    with serving(always(Response("", beside=({"tool_calls": [call]}, {"tool_calls": [rest]})))) as server:
        assert ask(make_client(server, tmp_path))[0] == '{"source": "x"}'


def test_of_several_choices_the_first_counts(tmp_path: Path) -> None:
    with serving(always(Response("good", beside=({"content": "another", "of_choice": 1},)))) as server:
        assert ask(make_client(server, tmp_path))[0] == "good"


def test_a_lone_surrogate_is_replaced_and_the_paid_reply_kept(tmp_path: Path) -> None:
    with serving(always(Response("good \ud800 enough"))) as server:
        client = make_client(server, tmp_path)
        text, calls = ask(client)
    assert text == "good ? enough" and client.cache.paid_by("c1")[0].text == text
    assert calls[0].usd == pytest.approx(COST)


def test_a_reply_that_is_cut_after_a_lone_surrogate_is_kept_and_asked_for_again(tmp_path: Path) -> None:
    with serving(in_order(Response("half \ud800 and more", drop_after=12), Response("whole"))) as server:
        client = make_client(server, tmp_path)
        assert ask(client)[0] == "whole"
    assert [reply.text for reply in client.cache.paid_by("c1")][-1] == "whole"
    assert all(reply.text.encode() for reply in client.cache.paid_by("c1"))


def test_an_error_of_an_endpoint_with_a_lone_surrogate_is_a_sentence(tmp_path: Path) -> None:
    with serving(always(Response("\ud800 no", status=400))) as server, pytest.raises(ModelError) as caught:
        ask(make_client(server, tmp_path))
    assert str(caught.value).encode()


def test_each_call_that_gave_no_reply_is_told_by_role(tmp_path: Path) -> None:
    tally = Tally()
    with serving(in_order(Response(status=500), Response(status=429), Response("hello"))) as server:
        client = make_client(server, tmp_path)
        client.on_failure = tally.failed
        assert ask(client)[0] == "hello"
    assert tally.metrics() == {"llm.failed.writer": 2}
    assert tally.reasons["writer"].startswith("openai/scripted: ") and "RateLimitError" in tally.reasons["writer"]
