"""Endpoints as they are, over real HTTP: a reply that was paid for is kept, or the reason is true.

Errors that may pass are retried, others are not.
"""

import gzip
import json
import threading
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.records.errors import BudgetError, ModelError, SetupError
from kernel_scientist.records.params import Budget, Model
from kernel_scientist.scientist.llm import provider
from kernel_scientist.scientist.llm.client import LlmClient
from kernel_scientist.scientist.llm.parsing import ReplyError
from kernel_scientist.scientist.llm.response_cache import Reply
from tests.scientist.model_server import ModelServer, Response, serving
from tests.scientist.raw_answers import COUNTED, DONE, STOP, STREAM, TEXT, USAGE, WHOLE, error, event, http, plain, said
from tests.scientist.test_llm_client import PRICE, ask, in_order, make_client


def client_of(server: ModelServer, folder: Path, **llm: Any) -> LlmClient:
    return make_client(server, folder, first_delay_s=0, longest_delay_s=0, **llm)


def kept(client: LlmClient) -> list[Reply]:
    """The replies that were paid for; their costs are those of the budget."""
    replies = client.cache.paid_by("c1")
    assert client.budget.tokens == sum(r.input_tokens + r.output_tokens for r in replies)
    assert client.budget.usd == pytest.approx(sum(r.usd for r in replies))
    return replies


READ: dict[str, tuple[bytes, ...]] = {
    "plain JSON": http(plain(), "application/json"),
    "plain JSON that says it is a stream": http(plain()),
    "plain JSON, indented, after blank lines and a mark": http(
        b"\n\n \n\xef\xbb\xbf\n" + plain().replace(b",", b",\n"), "application/json"
    ),
    "plain JSON, compressed": http(gzip.compress(plain()), "application/json", "200 OK", "Content-Encoding: gzip"),
    "plain JSON in pieces": (http(b"")[0], *(bytes([b]) for b in plain())),
    "plain JSON, content in parts": http(
        plain({"content": [{"type": "text", "text": TEXT[:4]}, {"type": "text", "text": TEXT[4:]}]})
    ),
    "a stream that says it is JSON": http(WHOLE, "application/json"),
    "a stream of no type": http(WHOLE, "application/octet-stream"),
    "no [DONE]": http(said() + STOP + COUNTED),
    "no reason for the end": http(said() + COUNTED + DONE),
    "no blank line at the end": http(said() + COUNTED + b"data: [DONE]"),
    "role-only chunks": http(event({"role": "assistant"}) * 3 + WHOLE),
    "null content": http(event({"content": None}) + event({"content": ""}) + WHOLE),
    "no delta": http(event("") + event({}, choices=None) + event({}, choices=[{"index": 0}]) + WHOLE),
    "content in parts": http(
        said([{"type": "text", "text": TEXT[:5]}]) + said([{"type": "text", "text": TEXT[5:]}]) + STOP + COUNTED + DONE
    ),
    "reasoning beside the text": http(event({"reasoning_content": "hm"}) + event({"reasoning": "hm"}) + WHOLE),
    "several choices in turn": http(
        b"".join(event({"content": c}, index=i) for c in TEXT for i in (0, 1, 2)) + STOP + COUNTED + DONE
    ),
    "a tool in place of the text": http(
        event(
            {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": TEXT}}]}
        )
        + event({}, "tool_calls")
        + COUNTED
        + DONE
    ),
    "a function of the old form": http(
        event({"function_call": {"name": "f", "arguments": TEXT}}) + STOP + COUNTED + DONE
    ),
    "a tool in plain JSON": http(
        plain({"content": None, "tool_calls": [{"function": {"name": "f", "arguments": TEXT}}]}, "tool_calls")
    ),
    "keep-alive comments": http(
        b": OPENROUTER PROCESSING\n\n\n\n" * 3 + said() + b": ping\n\n\n" + STOP + COUNTED + DONE
    ),
    "names and numbers of events": http(WHOLE.replace(b"data: {", b"event: message\nid: 7\nretry: 10\ndata: {")),
    "no blank after the colon": http(WHOLE.replace(b"data: ", b"data:")),
    "pieces of one byte": (http(b"")[0], *(bytes([b]) for b in WHOLE)),
    "CRLF": http(WHOLE.replace(b"\n", b"\r\n")),
    "compressed": http(gzip.compress(WHOLE), STREAM, "200 OK", "Content-Encoding: gzip"),
    "another model's name": http(WHOLE.replace(b'"scripted"', b'"something-else-2"')),
    "no model's name": http(WHOLE.replace(b'"model": "scripted", ', b"")),
    "the answer twice": http(WHOLE + WHOLE),
    "the whole text again at the end": http(
        said()
        + event(
            {"content": ""},
            "stop",
            choices=[{"index": 0, "delta": {"content": ""}, "message": {"content": TEXT}, "finish_reason": "stop"}],
        )
        + COUNTED
        + DONE
    ),
    "an unknown reason for the end": http(said() + event({}, "eos_or_so") + COUNTED + DONE),
    "a number as the reason": http(said() + event({}, 7) + COUNTED + DONE),
    "usage in every chunk": http(
        event({"content": TEXT}, usage={**USAGE, "completion_tokens": 1}) + event({}, "stop", usage=USAGE) + DONE
    ),
    "usage with the end": http(said() + event({}, "stop", usage=USAGE) + DONE),
    "usage as texts": http(said() + STOP + event(usage={"prompt_tokens": "70", "completion_tokens": " 50"}) + DONE),
    "a long header": http(WHOLE, STREAM, "200 OK", f"X-Trace: {'x' * 30_000}"),
    "many headers": http(WHOLE, STREAM, "200 OK", *(f"X-{n}: y" for n in range(90))),
}


@pytest.mark.parametrize("name", READ)
def test_an_odd_answer_is_read_and_kept(name: str, tmp_path: Path) -> None:
    with serving(in_order(Response(raw=READ[name]))) as server:
        client = client_of(server, tmp_path)
        text, calls = ask(client)
        (reply,) = kept(client)
        assert text == reply.text == TEXT and len(server.requests) == len(calls) == 1
        assert (reply.input_tokens, reply.output_tokens) == (70, 50)
        assert ask(client_of(server, tmp_path))[0] == TEXT and len(server.requests) == 1


def test_words_beside_a_call_do_not_hide_what_it_carries(tmp_path: Path) -> None:
    calls = [{"index": 0, "function": {"name": "write_file", "arguments": TEXT}}]
    streamed = (
        event({"content": "I write it."}) + event({"tool_calls": calls}) + event({}, "tool_calls") + COUNTED + DONE
    )
    for number, body in enumerate((streamed, plain({"content": "I write it.", "tool_calls": calls}, "tool_calls"))):
        with serving(in_order(Response(raw=http(body)))) as server:
            client = client_of(server, tmp_path / str(number))
            assert ask(client)[0] == f"I write it.\n{TEXT}" and len(kept(client)) == 1


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": -5, "completion_tokens": -1},
        {"prompt_tokens": "many", "completion_tokens": [1]},
        {"prompt_tokens": 10**30, "completion_tokens": 1e300},
        {"prompt_tokens": float("nan"), "completion_tokens": float("inf")},
        {"prompt_tokens": True, "completion_tokens": False},
        "none",
        [1, 2],
    ],
    ids=str,
)
def test_tokens_that_are_not_counted_are_estimated(usage: object, tmp_path: Path) -> None:
    for number, body in enumerate((said() + STOP + event(usage=usage) + DONE, plain(usage=usage))):
        with serving(in_order(Response(raw=http(body)))) as server:
            client = client_of(server, tmp_path / str(number))
            assert ask(client)[0] == TEXT and len(server.requests) == 1
            (reply,) = kept(client)
        assert 8 < reply.input_tokens < 30 and 8 < reply.output_tokens < 30 and 0 < reply.usd < 0.001


REFUSED = [
    (
        "refusal",
        "the model refuses (refusal): I can't help",
        http(event({"refusal": "I can't "}) + event({"refusal": "help"}) + STOP + COUNTED + DONE),
    ),
    ("refusal", "the model refuses (refusal): I can't help", http(plain({"content": None, "refusal": "I can't help"}))),
    (
        "content_filter",
        "the provider withheld the reply (content_filter): without a word",
        http(event({}, "content_filter") + DONE),
    ),
    (
        "content_filter",
        "the provider withheld the reply (content_filter): half",
        http(said("half") + event({}, "SAFETY") + DONE),
    ),
]


@pytest.mark.parametrize(("finish", "words", "raw"), REFUSED, ids=["stream", "plain", "silent filter", "filter"])
def test_a_refusal_is_named_and_not_asked_for_again(
    finish: str, words: str, raw: tuple[bytes, ...], tmp_path: Path
) -> None:
    def parse(_: object) -> str:
        raise ReplyError("no kernel")

    with serving(in_order(Response(raw=raw))) as server:
        client = client_of(server, tmp_path)
        with pytest.raises(ReplyError) as failed:
            ask(client, parse=parse)
        (reply,) = kept(client)
        assert str(failed.value) == words and reply.finish == finish and len(server.requests) == 1
        assert [call.fault for call in failed.value.llm_calls] == [words] and reply.output_tokens > 0


def test_only_reasoning_in_plain_json_is_named(tmp_path: Path) -> None:
    for number, message in enumerate(({"reasoning_content": "What if"}, {"content": "", "reasoning": "What if"})):
        with serving(in_order(Response(raw=http(plain(message))))) as server:
            client = client_of(server, tmp_path / str(number), corrections=0)
            with pytest.raises(ReplyError, match="only reasoning"):
                ask(client)
            assert kept(client)[0].output_tokens == 50


@pytest.mark.parametrize("word", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
def test_a_reply_that_was_cut_off_is_known_by_any_word_for_it(word: str, tmp_path: Path) -> None:
    cut = http(said("bad") + event({}, word) + COUNTED + DONE)
    with serving(in_order(Response(raw=cut), Response(raw=http(WHOLE)))) as server:
        text, calls = ask(client_of(server, tmp_path))
        assert text == TEXT and [r["max_tokens"] for r in server.requests] == [1000, 2000]
    assert "cut off at 1000 tokens (max_tokens)" in calls[0].fault


def test_a_reply_of_five_megabytes_is_cut_kept_and_told(tmp_path: Path) -> None:
    with serving(
        in_order(Response(raw=http(said("x" * (5 << 20)) + STOP + DONE)), Response(raw=http(WHOLE)))
    ) as server:
        client = client_of(server, tmp_path, budget=Budget(usd=50))
        text, calls = ask(client)
        assert text == TEXT and "characters; at most" in calls[0].fault and "max_tokens" not in calls[0].fault
        assert len(kept(client)) == 2 and len(json.dumps(server.requests[1])) < 100_000


LATER = formatdate(time.time() + 3600, usegmt=True)
PASSING: dict[str, tuple[Response, str]] = {
    "200 with an error": (error("200 OK", "overloaded", code=529), "overloaded"),
    "200 with an error as a text": (
        Response(raw=http(b'{"error": "out of memory"}', "application/json")),
        "out of memory",
    ),
    "200 with another record": (
        Response(raw=http(b'{"status": "loading"}', "application/json")),
        "a record without a reply",
    ),
    "200 with a list": (Response(raw=http(b"[1, 2]")), "a record without a reply"),
    "200 with a web page": (
        Response(raw=http(b"<!DOCTYPE html><html>hello</html>", "text/html")),
        "web page .* api_base",
    ),
    "200 without a body": (Response(raw=http(b"")), "no reply"),
    "200 with half a record": (Response(raw=http(plain()[:-40], "application/json")), "not complete"),
    "204": (Response(raw=(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",)), "no reply"),
    "an event that is no JSON": (Response(raw=http(b"data: {oops\n\n" + DONE)), "not JSON"),
    "an error in the stream": (
        Response(raw=http(b'data: {"error": {"message": "engine died", "code": 502}}\n\n')),
        "engine died",
    ),
    "408": (error("408 Request Timeout"), "scripted"),
    "409": (error("409 Conflict"), "scripted"),
    "425": (error("425 Too Early"), "scripted"),
    "429": (error("429 Too Many Requests"), "llm.concurrency"),
    "429, in seconds": (error("429 Too Many Requests", "slow", "Retry-After: 0"), "slow"),
    "429, at a date": (error("429 Too Many Requests", "slow", f"Retry-After: {LATER}"), "slow"),
    "429, in a year": (error("429 Too Many Requests", "slow", "Retry-After: 31536000"), "slow"),
    "429, never": (error("429 Too Many Requests", "slow", "Retry-After: 1e999"), "slow"),
    "429, in the past": (error("429 Too Many Requests", "slow", "Retry-After: -30"), "slow"),
    "429, in words": (error("429 Too Many Requests", "slow", "Retry-After: soon"), "slow"),
    "500": (error("500 Internal Server Error"), "scripted"),
    "502 with a web page": (
        Response(raw=http(b"<html><b>Bad gateway</b></html>", "text/html", "502 Bad Gateway")),
        "Bad gateway",
    ),
    "500 with a web page in lines": (
        Response(
            raw=http(
                b"<!DOCTYPE HTML>\n<html>\n<style>p {color: red}</style><title>Error</title>\n<p>No &lt;POST&gt;",
                "text/html",
                "500 Internal Server Error",
            )
        ),
        "a page in HTML: Error No <POST>",
    ),
    "503": (error("503 Service Unavailable"), "scripted"),
    "529": (error("529 Overloaded"), "scripted"),
    "a reset before the head": (Response(reset=True), "onnection"),
    "a reset in the head": (Response(raw=(b"HTTP/1.1 200 OK\r\nContent-",), reset=True), "onnection"),
    "a close before the head": (Response(drop_after=0, raw=(b"",)), "onnection"),
    "no HTTP": (Response(raw=(b"SSH-2.0-OpenSSH_9.6\r\n",)), "onnection"),
    "a header of a megabyte": (Response(raw=http(WHOLE, STREAM, "200 OK", f"X-Trace: {'x' * (1 << 20)}")), "onnection"),
}


@pytest.mark.parametrize("name", PASSING)
def test_what_passes_is_tried_again(name: str, tmp_path: Path) -> None:
    response, words = PASSING[name]
    with serving(in_order(response, Response(raw=http(WHOLE)))) as server:
        client = client_of(server, tmp_path)
        assert ask(client)[0] == TEXT and len(server.requests) == 2 and len(kept(client)) == 1
    with serving(in_order(response)) as server:
        with pytest.raises(
            ModelError, match=rf"(?s)llm\.writer: no model replies; openai/scripted: .*{words}"
        ) as failed:
            ask(client_of(server, tmp_path / "b", attempts=2))
        assert failed.value.may_pass and len(server.requests) == 2


CUT: dict[str, Response] = {
    "a stream that just ends": Response(raw=http(said())),
    "a reset in the body": Response(raw=http(said() * 200), reset=True),
    "an error after half of it": Response(raw=http(said() + b'data: {"error": {"message": "engine died"}}\n\n' + DONE)),
    "an end by an error": Response(raw=http(said() + event({}, "error") + DONE)),
    "an end by a busy system": Response(raw=http(said() + event({}, "insufficient_system_resource") + DONE)),
    "half an event": Response(raw=http(said() + b"data: {oops\n\n")),
    "a byte at a time": Response(raw=(http(said())[0] + said(), *(b":",) * 1000), drip_s=0.02),
    "comments for ever": Response(raw=(http(said())[0] + said(), *(b": ping\n\n",) * 1000), drip_s=0.02),
    "a record for ever": Response(raw=(http(b"")[0], *(b" ",) * 1000), drip_s=0.02),
    "an answer that is late": Response(raw=(http(said())[0] + said(), DONE), drip_s=0.9),
}


@pytest.mark.parametrize("name", CUT)
def test_what_was_received_of_a_cut_answer_is_paid_for_and_it_is_tried_again(name: str, tmp_path: Path) -> None:
    slow = CUT[name].drip_s > 0
    with serving(in_order(CUT[name], Response(raw=http(WHOLE)))) as server:
        client = client_of(server, tmp_path, timeout_s=0.6 if slow else 30)
        assert ask(client)[0] == TEXT and len(server.requests) == 2
        replies = kept(client)
    if name in ("a record for ever", "an answer that is late", "a reset in the body"):  # nothing need have arrived
        replies = [reply for reply in replies if not reply.failure or reply.text]
    else:
        assert len(replies) == 2
    assert all(bool(reply.failure) == (reply.text != TEXT or reply is not replies[-1]) for reply in replies)


PERMANENT: dict[str, tuple[Response, type[Exception], str]] = {
    "400": (error("400 Bad Request", "no such parameter"), ModelError, "no such parameter; .*the role's parameters"),
    "400, the context": (
        error("400 Bad Request", "This model's maximum context length is 8192 tokens", code="context_length_exceeded"),
        ModelError,
        "maximum context length .*knowledge.tokens",
    ),
    "200, the context": (
        error("200 OK", "maximum context length is 8192 tokens", code=400),
        ModelError,
        "knowledge.tokens",
    ),
    "the context, in the stream": (
        Response(raw=http(b'data: {"error": {"message": "prompt is too long: 9000 tokens", "code": 400}}\n\n')),
        ModelError,
        "knowledge.tokens",
    ),
    "401": (
        error("401 Unauthorized", "wrong key"),
        SetupError,
        "refuses the call .*wrong key; check the key: api_key_env",
    ),
    "402": (error("402 Payment Required", "balance"), ModelError, "no credit"),
    "403": (error("403 Forbidden", "not yours"), SetupError, "not yours; check the key's rights"),
    "404": (
        error("404 Not Found", "no model scripted"),
        SetupError,
        "no model scripted; check the model's name and api_base",
    ),
    "405": (error("405 Method Not Allowed"), ModelError, "api_base"),
    "413": (error("413 Content Too Large"), ModelError, "knowledge.tokens"),
    "422": (error("422 Unprocessable Content", "max_tokens: too many"), ModelError, "max_tokens: too many"),
    "200, a wrong key": (error("200 OK", "User not found", code=401), SetupError, "User not found; check the key"),
    "a redirection to nowhere": (Response(raw=http(b"", "text/html", "301 Moved Permanently")), ModelError, "api_base"),
}


def test_a_redirection_that_keeps_the_request_is_followed(tmp_path: Path) -> None:
    with serving(in_order(Response(raw=http(WHOLE)))) as there:
        for status, text in (("307 Temporary Redirect", TEXT), ("308 Permanent Redirect", TEXT), ("301 Moved", "")):
            to = f"Location: {there.address}/chat/completions"
            with serving(in_order(Response(raw=http(b"", "text/html", status, to)))) as server:
                client = client_of(server, tmp_path / status[:3])
                if text:
                    assert ask(client)[0] == text
                else:  # it asks for another request: one without the prompt
                    with pytest.raises(ModelError, match="check api_base"):
                        ask(client)
                assert len(server.requests) == 1
        assert len(there.requests) == 2


@pytest.mark.parametrize("name", PERMANENT)
def test_what_does_not_pass_is_not_tried_again(name: str, tmp_path: Path) -> None:
    response, kind, words = PERMANENT[name]
    with serving(in_order(response)) as server:
        client = client_of(server, tmp_path)
        with pytest.raises(kind, match=words) as failed:
            ask(client)
        assert len(server.requests) == 1 and not kept(client) and not getattr(failed.value, "may_pass", False)
        assert "\n" not in str(failed.value) and len(str(failed.value)) < 700


def test_a_stream_of_another_protocol_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    """Anthropic's: its bytes cannot be watched, and each comment ends the client's own limit of silence."""
    slow = Response(raw=(http(b"")[0], *(b": ping\n\n",) * 1000), drip_s=0.02)
    with serving(in_order(slow)) as server:
        base = server.address.removesuffix("/v1")
        role = {"model": "anthropic/x", "api_base": base}
        client = client_of(server, tmp_path, attempts=1, timeout_s=1, writer=role, budget=Budget(tokens=1500))
        with pytest.raises(ModelError, match="did not end within 2 s") as failed:
            ask(client)
        assert failed.value.may_pass and len(server.requests) == 1
        with pytest.raises(BudgetError):  # it is not over for the provider, which may charge for it
            ask(client, "write/k00002", sample=1)
    for thread in threading.enumerate():
        if thread.name == "model":
            thread.join(60)
    with client.budget.call(0.0, 1500):
        """The connection has ended, and nothing is reserved."""


def test_a_refused_call_is_a_wrong_set_up_only_before_the_first_reply(tmp_path: Path) -> None:
    """A key that is revoked at night ends no campaign with nothing: what was found is kept, and told why."""
    with serving(in_order(Response(raw=http(WHOLE)), error("401 Unauthorized", "revoked"))) as server:
        client = client_of(server, tmp_path)
        ask(client)
        with pytest.raises(ModelError, match="revoked; check the key") as failed:
            ask(client, "write/k00002", sample=1)
        assert not failed.value.may_pass and len(kept(client)) == 1
        with pytest.raises(ModelError, match="revoked"):  # nor does it after a resume
            ask(client_of(server, tmp_path), "write/k00003", sample=2)


def test_a_correction_that_is_refused_leaves_the_reply_before_it(tmp_path: Path) -> None:
    too_long = error("400 Bad Request", "prompt is too long")
    with serving(in_order(Response("bad"), too_long)) as server:
        client = client_of(server, tmp_path)
        with pytest.raises(ReplyError, match="it is bad") as failed:
            ask(client)
        assert len(server.requests) == 2 and len(failed.value.llm_calls) == len(kept(client)) == 1


def test_a_model_that_refuses_the_call_has_fallbacks_too(tmp_path: Path) -> None:
    def script(request: dict[str, Any], number: int) -> Response:
        return Response(TEXT) if request["model"] == "second" else error("404 Not Found")

    with serving(script) as server:
        second = Model(model="openai/second", api_base=server.address, price=PRICE)
        assert ask(client_of(server, tmp_path, writer={"fallbacks": (second,)}))[0] == TEXT


def test_an_unreadable_reply_is_recalled_by_its_own_call_only(tmp_path: Path) -> None:
    with serving(in_order(Response("bad"), Response("good"))) as server:
        client = client_of(server, tmp_path, corrections=0)
        for _ in range(2):  # the same step again: the reply is not paid for twice
            with pytest.raises(ReplyError):
                ask(client, "select/1")
            assert len(server.requests) == 1
        assert [ask(client, f"select/{n}")[0] for n in (2, 3)] == ["good", "good"]
        assert len(server.requests) == 2 and len(kept(client)) == 2


def rows(*names: str, **more: object) -> str:
    return json.dumps({"object": "list", "data": [{"id": name, **more} for name in names]})


LISTS = {
    "no list": (404, "{}", ""),
    "no GET": (405, "{}", ""),
    "no service": (501, "{}", ""),
    "the model": (200, rows("other", "qwen3"), ""),
    "a tag": (200, rows("qwen3:latest"), ""),
    "not the model": (200, rows("qwen2", "gemma"), "has no model 'qwen3'; it has qwen2, gemma"),
    "many models": (200, rows(*(f"m{n:02}" for n in range(40))), "it has m00, m01, m02, m03, m04 and 35 more"),
    "any name": (200, rows("openai/*", "gemma"), ""),
    "a part of the list": (200, json.dumps({**json.loads(rows("gemma")), "has_more": True}), ""),
    "llama.cpp": (200, rows("/models/gemma.gguf", owned_by="llamacpp"), ""),
    "adapters": (200, rows("gemma", parent="base"), ""),
    "nothing": (200, rows(), ""),
    "no names": (200, '{"data": [{"size": 3}, {"id": null}]}', ""),
    "a text": (200, '"models"', ""),
    "numbers": (200, '{"data": [1, 2]}', ""),
    "a wrong key": (401, "{}", "refuses the key in the variable LAB_KEY (status 401)"),
    "no rights": (403, "{}", "refuses the key in the variable LAB_KEY (status 403)"),
    "a key for calls alone": (403, '{"error": {"message": "Missing scopes: api.model.read"}}', ""),
    "a broken server": (500, "{}", ""),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_models_refuses_only_what_it_proves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    status, text, words = LISTS[name]
    monkeypatch.setenv("LAB_KEY", "sk-secret")
    with serving(in_order()) as server:
        server.listed = Response(text, status)
        found = provider.refusal(Model(model="openai/qwen3", api_base=server.address, api_key_env="LAB_KEY"))
        ((path, headers),) = server.asked
    assert (words in found and words) or not found, found
    assert path == "/v1/models" and headers["authorization"] == "Bearer sk-secret" and "secret" not in found


@pytest.mark.parametrize("calls", [404, 405])
def test_an_address_without_version_is_refused_where_it_takes_no_calls(calls: int) -> None:
    with serving(in_order()) as server:
        base = server.address.removesuffix("/v1")
        server.listed = Response("{}", 404)
        server.pages = {"/chat/completions": Response("{}", calls), "/v1/models": Response(rows("qwen3"))}
        found = provider.refusal(Model(model="openai/qwen3", api_base=base))
        refused = f"nothing is at {base}, but a list of models at {server.address}: write that as api_base"
        assert found == (refused if calls == 404 else "")
        server.pages = {}
        assert not provider.refusal(Model(model="openai/qwen3", api_base=base)), "a server without lists"


def test_a_list_is_asked_of_the_providers_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(in_order()) as server:
        base = server.address.removesuffix("/v1")
        for name in ("OLLAMA_API_BASE", "ANTHROPIC_API_BASE"):
            monkeypatch.setenv(name, base)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
        server.listed = Response('{"models": [{"name": "llama3:latest"}]}')
        assert not provider.refusal(Model(model="ollama/llama3"))
        assert "has no model 'qwen3'; it has llama3:latest" in provider.refusal(Model(model="ollama_chat/qwen3"))
        server.listed = Response("{}", 401)
        refused = provider.refusal(Model(model="anthropic/claude-sonnet-4-5"))
        assert "the key in the variable ANTHROPIC_API_KEY (status 401)" in refused
        assert [path for path, _ in server.asked] == ["/api/tags", "/api/tags", "/v1/models"]
        assert server.asked[-1][1]["x-api-key"] == "sk-secret"
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret\n")
        assert "ANTHROPIC_API_KEY has a space, a line break" in provider.refusal(Model(model="anthropic/claude-3"))
    assert f"no server answers at {base} (" in provider.refusal(Model(model="ollama/llama3"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:password@127.0.0.1:9/v1?key=secret")
    found = provider.refusal(Model(model="gpt-4o"))
    assert "no server answers at http://127.0.0.1:9/v1 (" in found and "password" not in found and "secret" not in found


def test_a_key_does_not_follow_a_redirection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "sk-secret")
    with serving(in_order()) as there, serving(in_order()) as server:
        server.listed = Response("{}", 302, {"Location": f"{there.address}/models"})
        assert not provider.refusal(Model(model="openai/x", api_base=server.address, api_key_env="LAB_KEY"))
        assert len(server.asked) == 1 and not there.asked
