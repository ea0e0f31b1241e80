"""A scripted model that calls tools before it answers, and the settings of a role that has them."""

import json
from typing import Any

from kernel_scientist.scientist.llm.tool_calls import ToolCall, written
from tests.scientist.model_server import ModelServer, Response
from tests.scientist.scripted_campaign import NewPlans
from tests.scientist.scripted_model import ScriptedModel

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

    def __init__(self, kinds: tuple[str, ...], functions: bool = True) -> None:
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
                    ToolCall("profile", json.dumps({"source": source})),  # only with measurements
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


def role_with_tools(server: ModelServer, functions: bool, **more: Any) -> str:
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


class NewPlansByTools(NewPlans, ToolUser):
    """Plans other experiments in each reply, takes its time, and calls functions."""
