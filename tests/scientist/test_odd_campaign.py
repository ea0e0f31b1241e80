"""A campaign whose models answer oddly at every turn: it ends whole, and pays for each reply once."""

import gzip
import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.scientist.llm.response_cache import ResponseCache
from tests.conftest import Cli
from tests.scientist.model_server import Response, serving
from tests.scientist.raw_answers import COUNTED, DONE, STOP, error, event, http, plain, said
from tests.scientist.scripted_campaign import settings, stored
from tests.scientist.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow

Form = Callable[[str], tuple[bytes, ...]]
FORMS: tuple[Form, ...] = (
    lambda text: http(plain({"content": text}), "application/json"),
    lambda text: http(said(text) + COUNTED + DONE),
    lambda text: http(gzip.compress(said(text) + STOP), "text/event-stream", "200 OK", "Content-Encoding: gzip"),
    lambda text: http((event({"reasoning_content": "hm"}) + said(text) + STOP + DONE).replace(b"\n", b"\r\n")),
    lambda text: http(said(f"<Think>\nif {{a}}\n</THINK>\n{text}") + STOP + event(usage={"prompt_tokens": -1}) + DONE),
    lambda text: http(event({"content": "another"}, index=1) + said("\ufeff" + text) + STOP + DONE),
    lambda text: http(b": ping\n\n" + said([{"type": "text", "text": text}]) + event({}, "eos", usage="none") + DONE),
    lambda text: http(said(f"{text}\n\nI made no use of \ud800 and \0.".encode("utf-8", "replace").decode()) + STOP),
)
FAILURES = (
    error("500 Internal Server Error"),
    error("429 Too Many Requests", "slow", "Retry-After: 0"),
    Response(raw=http(b"<html>busy</html>", "text/html")),
    Response(reset=True),
    Response(raw=http(said("half a re"))),
    error("200 OK", "overloaded", code=529),
    Response(raw=http(said("half") + b'data: {"error": {"message": "engine died"}}\n\n')),
    Response(raw=(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",)),
)
SILENT = Response(raw=http(event({}, "content_filter") + DONE))
REFUSAL = Response(raw=http(event({"refusal": "I would rather not"}) + STOP + DONE))
TOO_LONG = error("400 Bad Request", "maximum context length is 8192 tokens")
TALK = Response("I would rather talk about it.")


class OddModel:
    """Answers each request in another form, many after a failure; some it never answers well."""

    def __init__(self) -> None:
        self.model, self.forms, self.failures = ScriptedModel(("good",)), itertools.cycle(FORMS), iter(FAILURES)
        self.seen: Counter[str] = Counter()
        self.roles: Counter[str] = Counter()
        self.talks = [TALK] * 2

    def __call__(self, request: dict[str, Any], number: int) -> Response:
        prompt = request["messages"][1]["content"]
        role = prompt.split(maxsplit=2)[1]
        self.seen[prompt] += 1
        first = self.seen[prompt] == 1
        self.roles[role] += first
        if role == "Design" and not first and self.talks:
            return self.talks.pop()  # the next generation's prompt is the same: nothing was recorded since
        if special := {
            ("Implement", 2): SILENT,
            ("Implement", 4): TOO_LONG,
            ("Repair", self.roles[role]): REFUSAL,
            ("Summarise", self.roles[role]): error("404 Not Found", "no such model"),
        }.get((role, self.roles[role])):
            return special
        if first and (failure := next(self.failures, None)):
            return failure
        return Response(raw=next(self.forms)(self.model(request, number).text))


@pytest.mark.timeout(900)
def test_a_campaign_of_odd_answers_ends_whole(lab: Path, cli: Cli, prefect_api: str) -> None:
    model = OddModel()
    with serving(model) as server:
        arguments = settings(server, "search.generations=2", "tuning.tries=0", "llm.longest_delay_s=0.01")
        done = cli("optimize", "--json", *arguments, PREFECT_API_URL=prefect_api)
        requests = len(server.requests)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    result = json.loads(done.stdout)
    assert result["champion"] and "all generations are done" in result["stopped"] and result["kernels"] == 2 + 2 * 3
    assert next(model.failures, None) is None, "a failure did not happen"
    assert not model.talks and "design: the record is not a mapping" in done.stderr, done.stderr
    assert "writer: llm.writer: no model replies" in done.stderr and "knowledge.tokens" in done.stderr, done.stderr

    parent, children, store = stored(lab)
    assert len(children) == result["kernels"]
    replies = ResponseCache(lab / "data/replies").paid_by(parent.campaign)
    keys = [r.request.key for r in replies if not r.failure]
    assert len(keys) == len(set(keys)), "a reply was paid for twice"
    assert result["tokens"] == sum(r.input_tokens + r.output_tokens for r in replies) > 0
    assert result["usd"] == pytest.approx(sum(r.usd for r in replies), abs=1e-4)
    assert requests > len(replies) and {r.failure != "" for r in replies} == {True, False}

    silent = [t for t in store.population(parent) if t.kernel.report.startswith("no kernel")]
    assert [t.evaluation.verdict.value for t in silent] == ["absent"]
    assert "the provider withheld the reply (content_filter): without a word" in silent[0].kernel.report
    faults = {call.fault for call in silent[0].kernel.llm_calls}
    assert any("the model refuses (refusal): I would rather not" in fault for fault in faults), faults
