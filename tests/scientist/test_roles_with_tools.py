"""Campaigns whose designer, writer and repairer use tools before they answer: over HTTP, with compiler and store."""

import json
import types
from pathlib import Path
from typing import Any, cast

import pytest

from kernel_scientist.campaign.bench import Bench
from kernel_scientist.campaign.role_workshop import RoleWorkshop
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import load as load_params
from kernel_scientist.scientist.llm.response_cache import ResponseCache
from kernel_scientist.scientist.llm.tool_calls import ToolCall, wanted, written
from kernel_scientist.scientist.llm.workbench import NO_VERDICT
from tests.conftest import Cli
from tests.scientist.model_server import ModelServer, Response, serving
from tests.scientist.scripted_campaign import killed, settings, stored
from tests.scientist.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow
LOOPS = "loops"
"""The kind of an experiment whose writer goes on calling tools."""
DESIGNERS = [
    ToolCall("compile", '{"kernel": "k00001"}'),
    ToolCall("profile", '{"kernel": "k00002"}'),
    ToolCall("search", '{"words": "cache"}'),
    ToolCall("check", '{"kernel": "k00001"}'),
]
"""What a designer calls first; the last one it does not have."""


class ToolUser(ScriptedModel):
    """Writes by tools: wrong calls and right ones at once, then what the tools say decides what it does.

    `functions`: whether it calls functions, or writes its calls.
    """

    def __init__(self, kinds: tuple[str, ...], functions: bool) -> None:
        super().__init__(kinds)
        self.functions = functions
        self.said: list[str] = []
        """Results that it got."""

    def __call__(self, request: dict[str, Any], number: int) -> Response:
        """Answer; a designer, a writer and a repairer call tools first."""
        messages = request["messages"]
        if not messages[1]["content"].startswith(("# Design", "# Implement", "# Repair")):
            assert "tools" not in request
            return super().__call__(request, number)
        assert ("tools" in request) == self.functions
        asked = [call["id"] for one in messages for call in one.get("tool_calls") or ()]
        answered = [one["tool_call_id"] for one in messages if one["role"] == "tool"]
        if asked != answered:  # as providers do
            return Response("each tool call needs a result", status=400)
        assert ("## How to call a tool" in messages[1]["content"]) != self.functions
        turn = sum(message["role"] == "assistant" for message in messages)
        if turn:
            last = next(n for n in range(len(messages), 0, -1) if messages[n - 1]["role"] == "assistant")
            self.said += [one["content"] for one in messages[last:]]
        if messages[1]["content"].startswith("# Design"):
            return super().__call__(request, number) if turn else self._calls(DESIGNERS)
        kind = self._plan(messages[1]["content"])[1]
        answer = "" if kind == LOOPS else super().__call__(request, number).text
        source = answer.split("```python\n")[1].split("\n```")[0] + "\n" if "```python" in answer else ""
        if kind == LOOPS:
            return self._calls([ToolCall("search", json.dumps({"words": f"cache {turn}"}))])
        if turn == 0:
            broken = source.replace("def custom_kernel", "this is no Python\ndef custom_kernel", 1)
            return self._calls(
                [
                    ToolCall("check", json.dumps({"source": source})),
                    ToolCall("compile", json.dumps({"source": broken})),
                    ToolCall("sing", "{}"),
                    ToolCall("read", '{"name": '),
                    ToolCall("read", json.dumps({"name": "k00001", "lines": 5})),
                    ToolCall("profile", json.dumps({"source": source})),  # offered on model targets only
                    ToolCall("time", json.dumps({"source": source})),
                ]
            )
        return self._calls([ToolCall("submit", json.dumps({"source": source, "report": "after looking"}))])

    def _calls(self, calls: list[ToolCall]) -> Response:
        if not self.functions:
            return Response("I look first.\n\n" + "\n\n".join(map(written, calls)), tokens=(1000, 100))
        asked = [
            {"index": n, "id": f"c{n}", "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
            for n, one in enumerate(calls)
        ]
        return Response(
            "", finish="tool_calls", tokens=(1000, 100), beside=tuple({"tool_calls": [one]} for one in asked)
        )


def role(server: Any, functions: bool, **more: Any) -> str:
    price = {"input_usd": 1, "output_usd": 10}
    return json.dumps(
        {
            "model": "openai/scripted",
            "api_base": server.address,
            "price": price,
            "max_tokens": 2000,
            "functions": functions,
            "tools": True,
            **more,
        }
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("functions", [True, False], ids=["functions", "words"])
def test_writers_look_before_they_hand_in(functions: bool, lab: Path, cli: Cli, prefect_api: str) -> None:
    model = ToolUser(("good", "wrong", "loops"), functions)
    with serving(model) as server:
        arguments = settings(server, "search.generations=1")
        arguments += ["--set", f"llm.writer={role(server, functions)}"]
        arguments += ["--set", f"llm.repairer={role(server, functions, calls=7, looks=0)}"]
        arguments += ["--set", f"llm.designer={role(server, functions, calls=4)}"]
        done = cli("optimize", "--json", *arguments, PREFECT_API_URL=prefect_api)
        assert done.returncode == 0, done.stderr
        requests = len(server.requests)
    parent, _, store = stored(lab)
    replies = ResponseCache(lab / "data/replies").paid_by(parent.campaign)
    assert len(replies) == requests, "each reply is paid for once, and kept"
    assert json.loads(done.stdout)["usd"] == pytest.approx(sum(reply.usd for reply in replies), abs=1e-4)

    told = "\n".join(model.said)
    assert "its outputs are right" in told and "incorrect" in told, "checks of good and of wrong drafts"
    assert "SyntaxError" in told or "compile_error" in told
    assert "there is no tool 'sing'" in told and "the arguments are not JSON" in told
    assert "lines 1 to 5 of" in told and "there is no tool 'profile'" in told
    assert "all calls are used up" in told
    assert "instructions by class" in told and "geometric mean: " in told, "what is known of recorded kernels"
    assert "there is no tool 'check'; there are compile, profile, read, search" in told, "a designer builds nothing"
    assert "speed over k0000" in told and "2 of 3 measurements left" in told and NO_VERDICT in told
    assert "there is no tool 'time'" in told, "a repairer without looks"

    population = {trial.kernel.title: trial for trial in store.population(parent) if trial.kernel.experiment}
    good, wrong, loops = (
        next(t for title, t in population.items() if kind in title) for kind in ("good", "wrong", LOOPS)
    )
    assert good.evaluation.verdict.value == "ok" and good.kernel.report == "after looking"
    assert len([one for one in good.kernel.llm_calls if one.role == "writer"]) == 2
    assert wrong.evaluation.verdict.value == "incorrect", (
        "what a tool says is no verdict, and what it says was not heeded"
    )
    assert loops.evaluation.verdict.value == "absent" and "after its 12 calls" in loops.evaluation.reason
    calls = [reply for reply in replies if wanted(reply.text)[0]]
    assert {reply.role for reply in calls} == {"designer", "writer", "repairer"}
    traces = store.client.search_traces(locations=[store.experiment_id], max_results=500)
    assert len(traces) == requests
    asked = [one for trace in traces for one in trace.data.spans[0].inputs["messages"] if one["role"] == "tool"]
    assert any("its outputs are right" in one["content"] for one in asked), "a trace shows what the tools said"


def test_tools_that_build_are_refused_where_kernels_are_built_elsewhere() -> None:
    def elsewhere(role: str) -> Bench:
        params = load_params(None, [f"llm.{role}={{tools: true}}", "target=pool:gpus"])
        return cast(Bench, types.SimpleNamespace(params=params, target=types.SimpleNamespace(builder=None)))

    why = r"llm\.repairer\.tools: kernels of target pool:gpus are built where they are timed"
    with pytest.raises(SetupError, match=why):
        RoleWorkshop(elsewhere("repairer"))
    RoleWorkshop(elsewhere("designer"))


def test_a_killed_campaign_goes_on_within_a_conversation(lab: Path, cli: Cli, prefect_api: str) -> None:
    with serving(ToolUser(("good", "good", "wrong"), functions=True)) as server:
        arguments = settings(server, "search.generations=1")
        for name in ("designer", "writer", "repairer"):
            arguments += ["--set", f"llm.{name}={role(server, True)}"]
        killed(lab, arguments, prefect_api, lambda: _has_called(server))
        done = cli("optimize", "--json", "--resume", *arguments, PREFECT_API_URL=prefect_api)
        assert done.returncode == 0, done.stderr
        parent, children, _ = stored(lab)
        replies = ResponseCache(lab / "data/replies").paid_by(parent.campaign)
        keys, requests = [reply.request.key for reply in replies], len(server.requests)
        assert len(keys) == len(set(keys)), "nothing is paid twice"
        # the request in flight at the kill may be sent again, as its reply had not arrived
        assert requests - len(keys) in (0, 1)
        arguments += ["--set", f"llm.replay={parent.campaign}"]
        again = cli("optimize", "--json", *arguments, PREFECT_API_URL=prefect_api)
        assert again.returncode == 0, again.stderr
        assert len(server.requests) == requests and json.loads(again.stdout)["usd"] == 0
    replayed, repeats, _ = stored(lab)
    assert replayed.campaign != parent.campaign
    assert [run.data.tags["digest"] for run in repeats] == [run.data.tags["digest"] for run in children]


def _has_called(server: ModelServer) -> bool:
    """Whether the results of tools were sent to a writer."""
    conversations = [request["messages"] for request in list(server.requests)]
    written = [messages for messages in conversations if messages[1]["content"].startswith("# Implement")]
    return any(one["role"] == "tool" for messages in written for one in messages)
