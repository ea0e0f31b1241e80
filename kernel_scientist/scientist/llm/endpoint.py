"""One call of a model over HTTP, through litellm: a deadline, a size, and faults by what can be done about them."""

import contextlib
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
from kernel_scientist.scientist.llm.reply_store import Question

MOST_CHARACTERS = 4 << 20
"""A reply is cut off there."""
CHARACTERS_PER_TOKEN = 3.5
"""For estimates, on the safe side for code in English letters."""


class Fault(Exception):
    """A call without an answer. `again`: whether the same call may succeed later; `after_s`: when the server wants it;
    `text`: what had come until then."""

    def __init__(self, words: str, again: bool, after_s: float | None = None, text: str = "") -> None:
        super().__init__(words)
        self.again, self.after_s, self.text = again, after_s, text


@dataclass(frozen=True)
class Completion:
    """What came back."""

    text: str
    finish: str
    input_tokens: int
    output_tokens: int


def complete(model: Model, question: Question, timeout_s: float) -> Completion:
    """Ask once. Raises Fault, SetupError when key or address are not accepted."""
    import litellm

    litellm.suppress_debug_info = True  # else it prints advice on standard output, where our JSON goes
    deadline = time.monotonic() + timeout_s
    extra = {"api_base": model.api_base} if model.api_base else {}
    if model.api_base or model.api_key_env:
        # a server of one's own wants no key, but OpenAI's client does not start without one; never somebody else's
        extra["api_key"] = os.environ.get(model.api_key_env, "") or "none"
    parts: list[str] = []
    try:
        stream: Any = litellm.completion(
            model=model.model,
            messages=[m.model_dump() for m in question.messages],
            stream=True,
            stream_options={"include_usage": True},
            timeout=timeout_s,
            max_retries=0,  # one layer retries, and it is ours
            num_retries=0,
            drop_params=True,
            **question.parameters,
            **extra,
        )
        return _gathered(stream, question, deadline, parts)
    except Fault:
        raise
    except Exception as error:
        raise _fault(error, "".join(parts)) from error


def takes_schema(model: Model) -> bool:
    """Whether a model answers by a schema: what the parameters say, else what litellm knows of it."""
    if model.structured is not None:
        return model.structured
    import litellm

    return not model.api_base and bool(litellm.supports_response_schema(model.model))


def schema(form: type[BaseModel]) -> dict[str, object]:
    """Return the request's parameters that ask for a record of this form."""
    spec = {"name": form.__name__, "schema": form.model_json_schema()}
    return {"response_format": {"type": "json_schema", "json_schema": spec}}


def _gathered(stream: Iterable[Any], question: Question, deadline: float, parts: list[str]) -> Completion:
    finish, usage, size = "", None, 0
    for chunk in stream:
        usage = getattr(chunk, "usage", None) or usage
        for choice in getattr(chunk, "choices", None) or ():
            piece = getattr(choice.delta, "content", None) or ""
            parts.append(piece)
            size += len(piece)
            finish = choice.finish_reason or finish
        if size > MOST_CHARACTERS:
            finish = "length"
            break
        if time.monotonic() > deadline:
            raise Fault("the reply did not end in time", True, text="".join(parts))
    text = "".join(parts)
    # litellm makes up a reason for a stream that just ends; what the server said is kept beside it
    if size <= MOST_CHARACTERS and not getattr(stream, "received_finish_reason", finish):
        raise Fault("the stream broke off", True, text=text)
    asked = sum(estimated_tokens(m.content) for m in question.messages)
    return Completion(
        text,
        finish,
        int(getattr(usage, "prompt_tokens", 0) or asked),
        int(getattr(usage, "completion_tokens", 0) or estimated_tokens(text)),
    )


def _fault(error: Exception, text: str) -> Exception:
    """Say what can be done about an error of litellm's, which are OpenAI's."""
    from litellm import exceptions as known

    words = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if isinstance(error, (known.AuthenticationError, known.PermissionDeniedError, known.NotFoundError)):
        return SetupError(f"llm: the endpoint refuses the call ({words})")
    hopeless = (known.BadRequestError, known.ContextWindowExceededError, known.UnprocessableEntityError)
    return Fault(words, not isinstance(error, hopeless), _retry_after(error), text)


def _retry_after(error: Exception) -> float | None:
    """Return the seconds that the server asks to wait, if it does."""
    response = getattr(getattr(error, "response", None), "headers", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(error, "headers", None), response):
        value: Any = (headers or {}).get("retry-after")
        with contextlib.suppress(TypeError, ValueError):  # a date is allowed there too; then we wait as usual
            return max(0.0, float(value))
    return None


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text has, rather too many."""
    return int(len(text) / CHARACTERS_PER_TOKEN) + 8


class Breaker:
    """Stops calling an endpoint that fails again and again: after `limit` failures in a row it is left alone for
    `rest_s`, then one call tries. Thread-safe."""

    def __init__(self, limit: int, rest_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit, self.rest_s, self._clock = limit, rest_s, clock
        self._failures, self._closed_at = 0, 0.0
        self._lock = threading.Lock()

    def open(self) -> bool:
        """Whether a call may be made now."""
        with self._lock:
            if self._failures < self.limit:
                return True
            if self._clock() - self._closed_at < self.rest_s:
                return False
            self._closed_at = self._clock()  # this call tries for all
            return True

    def report(self, answered: bool) -> None:
        """Count an answer or a failure."""
        with self._lock:
            self._failures = 0 if answered else self._failures + 1
            if not answered:
                self._closed_at = self._clock()


def delay_s(attempt: int, after_s: float | None, llm: Llm, rng: random.Random) -> float:
    """Return how long to wait before the next attempt: what the server asks for, else doubling, with full jitter."""
    if after_s is not None:
        return min(llm.longest_delay_s, after_s + llm.first_delay_s * rng.random())
    return min(llm.longest_delay_s, llm.first_delay_s * 2**attempt) * rng.random()
