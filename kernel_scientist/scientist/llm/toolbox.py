"""The tools of one experiment: what a role may call, how often, and what it called."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from kernel_scientist.records.errors import InfrastructureError, one_line
from kernel_scientist.scientist.llm.parsing import ParsedReply, ReplyError
from kernel_scientist.scientist.llm.structured import faults, made_valid
from kernel_scientist.scientist.llm.tool_calls import ToolCall, ToolSpec, result, wanted
from kernel_scientist.scientist.prompts import Message

MOST_ROUNDS_OVER = 2
"""Replies with calls after the last call that is answered."""
MAX_RESULT = 12_000
"""Characters of a result; the middle of a longer one is left out."""
SUBMIT = "submit"
NONE_LEFT = "not carried out: all calls are used up. Answer now, in the requested form."
Measurement = Callable[[], str]
"""Measures, and returns what came of it. What a measurement said once is not measured again."""


class Arguments(BaseModel):
    """Base of the arguments of tools: a name that is not known is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Tool:
    """What a role may call."""

    name: str
    description: str
    arguments: type[Arguments]
    run: Callable[[Any, ParsedReply | None], str | Measurement]
    """Gets the arguments, and the reply that the call stands in. Raises ReplyError for what cannot be done."""

    def spec(self) -> ToolSpec:
        """Return it as a model sees it."""
        schema = self.arguments.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        return ToolSpec(name=self.name, description=self.description, parameters=schema)


@dataclass
class Toolbox:
    """The tools of one conversation."""

    tools: Sequence[Tool]
    most_calls: int
    submitted: Callable[[Any], str] | None = None
    """Returns the arguments of `submit` as a reply in the form that the prompt asks for; None: nothing is handed in."""
    most_looks: int = 0
    """Most calls that measure."""
    done: int = 0
    """Calls so far."""
    looks: int = 0
    """Measurements so far."""
    over: int = field(default=0, init=False)
    """Replies with calls since none was left."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools as a model sees them."""
        return tuple(tool.spec() for tool in self.tools)

    def answer(self, text: str, before: Sequence[Message] = ()) -> list[Message] | str:
        """Return the results of the calls in a reply, one message each; without calls, or with the one that hands in a
        kernel, the reply that the prompt asks for.

        `before`: these results, if the conversation was held before: measurements among them are not repeated. Raises
        ReplyError if a model goes on calling when no calls are left.
        """
        calls, reply = wanted(text)
        if not calls:
            return text
        messages = list[Message]()
        for call in calls:
            try:
                tool, arguments = self._read(call)
                if self.submitted and tool.name == SUBMIT and len(calls) == 1:
                    return self.submitted(arguments)
                said = self._run(tool, arguments, reply, before[len(messages) : len(messages) + 1])
            except ReplyError as error:
                said = f"not carried out: {error}"
            left = max(0, self.most_calls - self.done)
            told = f"{_shortened(said)}\n({left} call{'' if left == 1 else 's'} left)"
            messages.append(result(self.done, call, told))
        if self.done > self.most_calls:
            self.over += 1
            if self.over > MOST_ROUNDS_OVER:
                raise ReplyError(f"it went on calling tools after its {self.most_calls} calls and did not answer")
        return messages

    def refused(self, text: str, why: str) -> list[Message]:
        """Return the answers to a reply that cannot be used: protocols with functions want a result for each call."""
        calls, _ = wanted(text)
        return [result(self.done, call, why) for call in calls] or [Message(role="user", content=why)]

    def _run(self, tool: Tool, arguments: Arguments, reply: ParsedReply | None, before: Sequence[Message]) -> str:
        if tool.name == SUBMIT:
            raise ReplyError("hand the kernel in by a reply with no other call, once you know the results of these")
        if self.done > self.most_calls:
            return NONE_LEFT
        try:
            said = tool.run(arguments, reply)
            return said if isinstance(said, str) else self._measured(said, before)
        except InfrastructureError as error:
            return f"no result, through no fault of the kernel: {one_line(error)}"

    def _measured(self, measure: Measurement, before: Sequence[Message]) -> str:
        if self.looks == self.most_looks:
            raise ReplyError(f"all {self.most_looks} measurements are used up")
        self.looks += 1
        if before:
            return before[0].content.partition("\n")[2].rpartition("\n")[0]  # without what is added to each result
        return f"{measure()}\n({self.most_looks - self.looks} of {self.most_looks} measurements left)"

    def _read(self, call: ToolCall) -> tuple[Tool, Arguments]:
        """Return the tool of a call, and its arguments. A call that cannot be read is one of those that are counted."""
        self.done += 1
        tool = next((one for one in self.tools if one.name == call.name), None)
        if tool is None:
            names = ", ".join(one.name for one in self.tools)
            raise ReplyError(f"there is no tool {call.name or '(without a name)'!r}; there are {names}")
        try:
            given: Any = made_valid(json.loads(call.arguments or "{}", strict=False))
        except (ValueError, RecursionError) as error:
            raise ReplyError(
                f"the arguments are not JSON ({error}); they are an object as in {_example(tool)}"
            ) from error
        if not isinstance(given, dict):
            raise ReplyError(f"the arguments are not a JSON object, as in {_example(tool)}")
        try:
            return tool, tool.arguments.model_validate(given)
        except ValidationError as error:
            raise ReplyError(f"arguments of {tool.name}: {faults(error)}") from error


def _example(tool: Tool) -> str:
    return json.dumps(dict.fromkeys(tool.arguments.model_fields, "..."))


def _shortened(text: str) -> str:
    half = MAX_RESULT // 2
    left_out = len(text) - MAX_RESULT
    return text if left_out <= 0 else f"{text[:half]}\n... ({left_out} characters left out) ...\n{text[-half:]}"
