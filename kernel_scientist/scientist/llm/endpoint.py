"""One model call over HTTP through litellm: time limit, size limit, classified errors, circuit breaker."""

import contextlib
import importlib
import os
import random
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Llm, Model
from kernel_scientist.records.text import valid
from kernel_scientist.scientist.llm.response_cache import LlmRequest

MAX_CHARACTERS = 4 << 20
"""Longer replies are cut off."""
CHARACTERS_PER_TOKEN = 3.5
"""For estimates; rather too low for English text and code, so that estimates are rather too high."""


class CallError(Exception):
    """A call without a complete reply."""

    def __init__(self, message: str, retryable: bool, after_s: float | None = None, text: str = "") -> None:
        """`after_s`: delay that the server asks for; `text`: the part of the reply that was received."""
        super().__init__(valid(message))
        self.retryable, self.after_s, self.text = retryable, after_s, valid(text)


@dataclass(frozen=True)
class ModelOutput:
    """A complete reply."""

    text: str
    finish: str
    input_tokens: int
    output_tokens: int


class Beside:
    """What came beside a reply's text: reasoning, the call of a tool."""

    def __init__(self) -> None:
        self._parts: dict[str, list[str]] = {"reasoning_content": [], "tool_calls": []}

    def add(self, delta: Any) -> int:
        """Add a piece. Returns its number of characters."""
        calls = [getattr(one, "function", None) for one in getattr(delta, "tool_calls", None) or ()]
        found = {
            "reasoning_content": getattr(delta, "reasoning_content", None),
            "tool_calls": "".join(getattr(one, "arguments", None) or "" for one in calls),
        }
        for name, piece in found.items():
            self._parts[name].append(piece if isinstance(piece, str) else "")
        return sum(len(parts[-1]) for parts in self._parts.values())

    def instead(self) -> str:
        """Return what stands for a reply without text."""
        reasoning, arguments = ("".join(parts) for parts in self._parts.values())
        return arguments or (f"<think>{reasoning}</think>" if reasoning else "")


def complete(model: Model, request: LlmRequest, timeout_s: float) -> ModelOutput:
    """Call a model once. Raises CallError; SetupError if key or address are refused."""
    import litellm

    importlib.import_module("openai.resources")  # otherwise the first call loads it, for seconds of its time limit
    litellm.suppress_debug_info = True  # otherwise litellm prints to standard output, which carries our JSON
    deadline = time.monotonic() + timeout_s
    extra = {"api_base": model.api_base} if model.api_base else {}
    if model.api_base or model.api_key_env:
        # OpenAI's client requires a key even for a local server, and would otherwise send $OPENAI_API_KEY there
        extra["api_key"] = os.environ.get(model.api_key_env, "") or "none"
    parts: list[str] = []
    try:
        stream: Any = litellm.completion(
            model=model.model,
            messages=[m.model_dump() for m in request.messages],
            stream=True,
            stream_options={"include_usage": True},
            timeout=timeout_s,
            max_retries=0,  # retries happen in one layer only: LlmClient
            num_retries=0,
            drop_params=True,
            **request.parameters,
            **extra,
        )
        return _read(stream, request, deadline, parts)
    except CallError:
        raise
    except Exception as error:
        raise _classified(error, "".join(parts)) from error


def takes_schema(model: Model) -> bool:
    """Whether a model accepts a JSON schema, by the parameters or else by litellm's table."""
    if model.structured is not None:
        return model.structured
    import litellm

    return not model.api_base and bool(litellm.supports_response_schema(model.model))


def schema(form: type[BaseModel]) -> dict[str, object]:
    """Return the request parameters that ask for a record of this type."""
    spec = {"name": form.__name__, "schema": form.model_json_schema()}
    return {"response_format": {"type": "json_schema", "json_schema": spec}}


def _read(stream: Iterable[Any], request: LlmRequest, deadline: float, parts: list[str]) -> ModelOutput:
    finish, usage, size, beside = "", None, 0, Beside()
    for chunk in stream:
        usage = getattr(chunk, "usage", None) or usage
        for choice in getattr(chunk, "choices", None) or ():
            if getattr(choice, "index", 0):
                continue  # several choices are several replies
            piece = getattr(choice.delta, "content", None) or ""
            parts.append(piece)
            size += len(piece) + beside.add(choice.delta)
            finish = choice.finish_reason or finish
        if size > MAX_CHARACTERS:
            finish = "length"
            break
        if time.monotonic() > deadline:
            raise CallError("the reply did not end in time", True, text="".join(parts))
    text = "".join(parts)
    # litellm invents a finish reason for a stream that just ends; the server's own is in received_finish_reason
    if size <= MAX_CHARACTERS and not getattr(stream, "received_finish_reason", finish):
        raise CallError("the stream ended within the reply", True, text=text)
    text = text if text.strip() else beside.instead()
    return ModelOutput(
        valid(text),
        finish,
        int(getattr(usage, "prompt_tokens", 0) or input_tokens(request)),
        int(getattr(usage, "completion_tokens", 0) or estimated_tokens(text)),
    )


def _classified(error: Exception, text: str) -> Exception:
    """Return litellm's error (its types are OpenAI's) as a CallError or SetupError."""
    from litellm import exceptions

    message = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if isinstance(error, (exceptions.AuthenticationError, exceptions.PermissionDeniedError, exceptions.NotFoundError)):
        return SetupError(f"llm: the endpoint refuses the call ({valid(message)})")
    permanent = exceptions.BadRequestError, exceptions.ContextWindowExceededError, exceptions.UnprocessableEntityError
    return CallError(message, not isinstance(error, permanent), _retry_after(error), text)


def _retry_after(error: Exception) -> float | None:
    """Return the seconds of the server's Retry-After header, if any."""
    response = getattr(getattr(error, "response", None), "headers", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(error, "headers", None), response):
        value: Any = (headers or {}).get("retry-after")
        with contextlib.suppress(TypeError, ValueError):  # the header may also be a date, which is ignored
            return max(0.0, float(value))
    return None


def estimated_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text, rather too many."""
    return int(len(text) / CHARACTERS_PER_TOKEN) + 8


def input_tokens(request: LlmRequest) -> int:
    """Return the estimated number of tokens of a request's messages."""
    return sum(estimated_tokens(m.content) for m in request.messages)


class CircuitBreaker:
    """Stops calls to an endpoint for `rest_s` after `limit` failures in a row, then lets one call try. Thread-safe."""

    def __init__(self, limit: int, rest_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit, self.rest_s, self._clock = limit, rest_s, clock
        self._failures, self._failed_at = 0, 0.0
        self._lock = threading.Lock()

    def allows_call(self) -> bool:
        """Whether a call may be made now."""
        with self._lock:
            if self._failures < self.limit:
                return True
            if self._clock() - self._failed_at < self.rest_s:
                return False
            self._failed_at = self._clock()  # other threads wait for the result of this call
            return True

    def report(self, success: bool) -> None:
        """Count a success or a failure."""
        with self._lock:
            self._failures = 0 if success else self._failures + 1
            if not success:
                self._failed_at = self._clock()


def delay_s(attempt: int, after_s: float | None, llm: Llm, rng: random.Random) -> float:
    """Return the delay before the next attempt: what the server asks for, else exponential with full jitter."""
    if after_s is not None:
        return min(llm.longest_delay_s, after_s + llm.first_delay_s * rng.random())
    return min(llm.longest_delay_s, llm.first_delay_s * 2**attempt) * rng.random()
