"""Calls of tools as text: round trips, other forms, OpenAI's form; tools that are called wrongly."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.scientist.llm.answer import Answer
from kernel_scientist.scientist.llm.parsing import ParsedReply, ReplyError
from kernel_scientist.scientist.llm.response_cache import LlmRequest
from kernel_scientist.scientist.llm.tool_calls import ToolCall, as_functions, as_text, wanted, written
from kernel_scientist.scientist.llm.toolbox import MOST_ROUNDS_OVER, Arguments, Measurement, Tool, Toolbox
from kernel_scientist.scientist.prompts import Message

NAMES = st.from_regex(r"[a-z]{1,10}", fullmatch=True)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\0"), max_size=200
)


@given(st.lists(st.tuples(NAMES, TEXTS), min_size=1, max_size=4), st.sampled_from(["", "I look at it first.\n\n"]))
def test_calls_written_as_text_are_read_as_they_were(pairs: list[tuple[str, str]], before: str) -> None:
    calls = [ToolCall(name, json.dumps({"source": text})) for name, text in pairs]
    found, rest = wanted(before + "\n\n".join(map(written, calls)))
    assert found == calls
    assert rest is not None and rest.blocks == () and rest.prose == before.strip()


@given(st.lists(st.tuples(NAMES, TEXTS), min_size=1, max_size=4))
def test_a_conversation_in_openais_form_has_a_result_for_each_call(pairs: list[tuple[str, str]]) -> None:
    calls = [ToolCall(name, json.dumps({"source": text})) for name, text in pairs]
    said = [{"role": "user", "content": "write"}, {"role": "assistant", "content": "\n\n".join(map(written, calls))}]
    said += [{"role": "tool", "content": f"result {number}"} for number, _ in enumerate(calls)]
    _, assistant, *results = as_functions(said)
    asked = assistant["tool_calls"]
    assert [(one["function"]["name"], one["function"]["arguments"]) for one in asked] == [
        (c.name, c.arguments) for c in calls
    ]
    assert [one["tool_call_id"] for one in results] == [one["id"] for one in asked]
    assert [one["role"] for one in as_text(said)] == ["user", "assistant", "user"], "all results in one message"


@pytest.mark.parametrize(
    "text",
    [
        '```tool check\n{"source": "x"}\n```',
        '```tool_call\n{"name": "check", "arguments": {"source": "x"}}\n```',
        '```tool\n{"tool": "check", "parameters": {"source": "x"}}\n```',
        '<tool_call>\n{"name": "check", "arguments": {"source": "x"}}\n</tool_call>',
        '<think>Perhaps:\n```tool compile\n{}\n```\n</think>\n```tool check\n{"source": "x"}\n```',
    ],
)
def test_a_call_may_be_written_in_several_forms(text: str) -> None:
    (call,), _ = wanted(text)
    assert call.name == "check" and json.loads(call.arguments) == {"source": "x"}


def streamed(*deltas: dict[str, Any]) -> str:
    answer = Answer(offered=True)
    for delta in deltas:
        answer.add({"choices": [{"index": 0, "delta": delta}]})
    return answer.output(LlmRequest(model="m", parameters={}, messages=(Message(role="user", content="x"),))).text


def piece(index: int, name: str = "", arguments: str = "", number: str = "") -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "id": number, "function": {"name": name, "arguments": arguments}}]}


@pytest.mark.parametrize(
    "deltas",
    [
        (piece(0, "check", '{"a"', "x"), piece(0, "", ": 1}"), piece(1, "read", '{"b": 2}', "y")),
        (piece(0, "check", '{"a": 1}', "x"), piece(0, "read", '{"b": 2}', "y")),
        (piece(0, "check", "", "x"), piece(1, "read", "", "y"), piece(0, "", '{"a": 1}'), piece(1, "", '{"b": 2}')),
    ],
    ids=["one after the other", "all at one place", "interleaved"],
)
def test_calls_of_a_stream_are_put_together(deltas: tuple[dict[str, Any], ...]) -> None:
    calls, rest = wanted(streamed({"content": "Looking."}, *deltas))
    assert calls == [ToolCall("check", '{"a": 1}'), ToolCall("read", '{"b": 2}')]
    assert rest is not None and rest.prose == "Looking."


class OfText(Arguments):
    text: str


def box(most: int = 3) -> Toolbox:
    def run(arguments: OfText, _: ParsedReply | None) -> str:
        return arguments.text.upper()

    tools = [Tool("shout", "Says it loudly.", OfText, run), Tool("submit", "Hands in.", OfText, run)]
    return Toolbox(tools, most, lambda submitted: f"handed in: {submitted.text}")


def call(name: str, arguments: str) -> str:
    return written(ToolCall(name, arguments))


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("shout", '{"text": "a"}', "A\n(2 calls left)"),
        ("whisper", '{"text": "a"}', "there is no tool 'whisper'; there are shout, submit"),
        ("shout", '{"text": "a"', "the arguments are not JSON"),
        ("shout", "[1]", "the arguments are not a JSON object"),
        ("shout", '{"words": "a"}', "arguments of shout: text: Field required; words: Extra inputs"),
        ("shout", '{"text": 3}', "arguments of shout: text: Input should be a valid string"),
        ("", '{"text": "a"}', "there is no tool"),
        ("shout", '{"text": "a\\ud800\\u0000"}', "A?\ufffd"),
        ("shout", '{"text": "a\n"}', "A\n"),
        ("shout", "[" * 100_000, "the arguments are not JSON"),
        ("shout", '{"text": ' + "[" * 50 + "]" * 50 + "}", "not carried out"),
    ],
)
def test_a_call_gets_its_result_or_says_what_is_wrong_with_it(name: str, arguments: str, said: str) -> None:
    answered = box().answer(call(name, arguments))
    assert isinstance(answered, list) and len(answered) == 1
    assert answered[0].role == "tool" and said in answered[0].content


def test_several_calls_get_a_result_each_and_a_kernel_is_handed_in_alone() -> None:
    tools, handing_in = box(), call("submit", '{"text": "b"}')
    first, second = tools.answer(call("shout", '{"text": "a"}') + "\n" + handing_in)
    assert isinstance(first, Message) and "A" in first.content
    assert isinstance(second, Message) and "with no other call" in second.content
    assert tools.answer(handing_in) == "handed in: b"
    assert tools.answer("no call at all") == "no call at all"


def test_calls_end() -> None:
    tools = box(most=2)
    for _ in range(2):
        tools.answer(call("shout", '{"text": "a"}'))
    for _ in range(MOST_ROUNDS_OVER):
        (message,) = tools.answer(call("shout", '{"text": "a"}'))
        assert isinstance(message, Message) and "all calls are used up" in message.content
    with pytest.raises(ReplyError, match="after its 2 calls and did not answer"):
        tools.answer(call("shout", '{"text": "a"}'))


def test_measurements_have_a_limit_and_are_not_repeated() -> None:
    made = list[str]()

    def measure(arguments: OfText, _: ParsedReply | None) -> str | Measurement:
        return "it fails" if arguments.text == "bad" else lambda: made.append(arguments.text) or f"{len(made)}.\nfaster"

    def fresh() -> Toolbox:
        return Toolbox([Tool("time", "Measures.", OfText, measure)], 9, most_looks=2)

    texts = [call("time", json.dumps({"text": text})) for text in ("bad", "a", "b", "c")]
    tools, again = fresh(), fresh()
    held = [one for text in texts for one in tools.answer(text) if isinstance(one, Message)]
    assert made == ["a", "b"], "what fails before it is measured takes none"
    assert "1.\nfaster\n(1 of 2 measurements left)\n(7 calls left)" in held[1].content
    assert "all 2 measurements are used up" in held[3].content
    repeated = [one for text, before in zip(texts, held, strict=True) for one in again.answer(text, [before])]
    assert repeated == held and made == ["a", "b"]
    (afresh,) = fresh().answer(texts[1])
    assert isinstance(afresh, Message) and "3.\nfaster" in afresh.content


def test_what_cannot_be_used_is_answered_once_per_call() -> None:
    tools = box()
    refused = tools.refused(call("submit", '{"text": "a"}') + "\n" + call("shout", "{}"), "say it again")
    assert [one.role for one in refused] == ["tool", "tool"] and all("say it again" in one.content for one in refused)
    assert tools.refused("no call", "say it again") == [Message(role="user", content="say it again")]


def test_arguments_that_are_no_record_are_sent_back_as_an_empty_one() -> None:
    said = [{"role": "assistant", "content": call("sing loud", '{"text": "a')}, {"role": "tool", "content": "r"}]
    assistant, _ = as_functions(said)
    assert assistant["tool_calls"][0]["function"] == {"name": "sing_loud", "arguments": "{}"}
