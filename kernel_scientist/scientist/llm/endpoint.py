"""One model call over HTTP through litellm, with a time limit and a size limit."""

import contextlib
import importlib
import os
import time
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from kernel_scientist.records.params import Model
from kernel_scientist.scientist.llm.answer import MAX_CHARACTERS, Answer, ModelOutput
from kernel_scientist.scientist.llm.body import chunks
from kernel_scientist.scientist.llm.failures import CallError, classified
from kernel_scientist.scientist.llm.response_cache import LlmRequest
from kernel_scientist.scientist.llm.tool_calls import ToolSpec, as_functions, as_text

TOOLS = "tools"
"""The request parameter that offers tools."""


def load() -> None:
    """Load litellm, and of OpenAI's client what its first call would load, for seconds of its time limit."""
    import litellm

    importlib.import_module("openai.resources")
    litellm.suppress_debug_info = True  # otherwise litellm prints to standard output, which carries our JSON


def complete(model: Model, request: LlmRequest, timeout_s: float) -> ModelOutput:
    """Call a model once. Raises CallError."""
    load()
    import litellm

    deadline = time.monotonic() + timeout_s
    extra = {"api_base": model.api_base} if model.api_base else {}
    if model.api_base or model.api_key_env:
        # OpenAI's client requires a key even for a local server, and would otherwise send $OPENAI_API_KEY there
        extra["api_key"] = os.environ.get(model.api_key_env, "") or "none"
    offered = TOOLS in request.parameters
    answer, messages = Answer(offered), [m.model_dump() for m in request.messages]
    try:
        stream: Any = litellm.completion(
            model=model.model,
            messages=as_functions(messages) if offered else as_text(messages),
            stream=True,
            stream_options={"include_usage": True},
            timeout=timeout_s,
            max_retries=0,  # retries happen in one layer only: LlmClient
            num_retries=0,
            drop_params=True,
            _skip_mcp_handler=True,  # with tools it would import a version of mcp that we need not have
            **request.parameters,
            **extra,
        )
        _read(stream, deadline, answer)
        return answer.output(request)
    except Exception as error:
        raise classified(error, answer.text) from error


def takes_schema(model: Model) -> bool:
    """Whether a model accepts a JSON schema, by the parameters or else by litellm's table."""
    if model.structured is not None:
        return model.structured
    import litellm

    return not model.api_base and bool(litellm.supports_response_schema(model.model))


def takes_tools(model: Model) -> bool:
    """Whether a model calls functions, by the parameters or else by litellm's table."""
    if model.functions is not None:
        return model.functions
    import litellm

    return not model.api_base and bool(litellm.supports_function_calling(model.model))


def functions(tools: Sequence[ToolSpec]) -> dict[str, object]:
    """Return the request parameters that offer tools."""
    return {TOOLS: [tool.as_function() for tool in tools]}


def schema(form: type[BaseModel]) -> dict[str, object]:
    """Return the request parameters that ask for a record of this type."""
    spec = {"name": form.__name__, "schema": form.model_json_schema()}
    return {"response_format": {"type": "json_schema", "json_schema": spec}}


def _read(stream: Any, deadline: float, answer: Answer) -> None:
    """Read an answer to its end. Raises CallError if it has none."""
    pieces, body = chunks(stream, deadline)
    with contextlib.closing(body.response) if body else contextlib.nullcontext():
        for piece in pieces:
            answer.add(piece)
            if answer.size > MAX_CHARACTERS:
                return
            if time.monotonic() > deadline:
                raise CallError("the reply did not end in time", True)
    if answer.failed:
        raise CallError("the server ended the reply with an error", True)
    if body is None:  # litellm invents a reason for a stream that just ends; the server's own is here
        ended = getattr(stream, "received_finish_reason", answer.finish)
    else:
        ended = answer.finish or body.ended or body.whole
    if not ended:
        raise CallError("the stream ended within the reply" if answer.size else "the server sent no reply", True)
