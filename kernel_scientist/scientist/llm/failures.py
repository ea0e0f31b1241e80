"""Calls that gave no complete reply: why, what to do about it, whether and when another try makes sense."""

import contextlib
import email.utils
import html
import json
import random
import re
import threading
import time
from collections.abc import Callable, Mapping

from kernel_scientist.records.params import Llm

REFUSED = (401, 403, 404)
"""Statuses of a wrong set-up: key, rights, address, name of the model."""
PERMANENT = (*REFUSED, 400, 402, 405, 406, 410, 411, 413, 414, 415, 422, 431, 451, 501)
"""Statuses with which the same request would be answered again; so would be a redirection."""
ADVICE = {
    400: "the request itself is not accepted: see the role's parameters",
    401: "check the key: api_key_env, or the provider's variable",
    402: "the account has no credit left",
    403: "check the key's rights",
    404: "check the model's name and api_base",
    405: "check api_base",
    501: "check api_base",
    413: "the prompt is too long: lower knowledge.tokens, or name a model with a longer context",
    429: "calls come too fast or the quota is used up: lower llm.concurrency, or see the provider's limits",
}
CONTEXT = ("context length", "context window", "maximum context", "prompt is too long", "too many tokens")
"""Words with which servers say that a prompt is too long."""
NAMES = re.compile(r"^(?:(?:litellm\.)?\w+Error: )+(?:\w+Exception - )?")
"""Pattern of the names of errors with which litellm begins its messages, several times over."""
PAGE, TAGS = (
    re.compile(r"<!doctype\s+html|<html\b", re.I),
    re.compile(r"<style\b.*?(?:</style>|$)|<[^>]*>?", re.I | re.S),
)
OF_PAGE = 100
"""Characters of the text of a page."""
MOST = 300
"""Characters of a server's own words."""


class CallError(Exception):
    """A call without a complete reply."""

    def __init__(
        self, message: str, retryable: bool, after_s: float | None = None, text: str = "", refused: bool = False
    ) -> None:
        """`after_s`: delay that the server asks for; `text`: the part of the reply that was received.

        `refused`: key, rights, address or name are wrong, as far as the server says.
        """
        super().__init__(message)
        self.retryable, self.after_s, self.text, self.refused = retryable, after_s, text, refused


def classified(error: Exception, text: str = "") -> CallError:
    """Return litellm's or OpenAI's error as a CallError. `text`: the part of the reply that was received."""
    if isinstance(error, CallError):
        return CallError(str(error), error.retryable, error.after_s, text, error.refused)
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):  # an error within a stream
        record = getattr(error, "body", None)
        status = _status(record) if isinstance(record, Mapping) else 0
    words = NAMES.sub("", _words(str(error)))
    if isinstance(error, json.JSONDecodeError):
        return CallError(f"an event of the stream is not JSON: {words}", True, text=text)
    return _of(status, f"{type(error).__name__}: {words}" if words else type(error).__name__, _retry_after(error), text)


def of_record(record: object) -> CallError | None:
    """Return the error that a record is in place of a reply, as some servers send one with status 200."""
    if isinstance(record, Mapping) and record.get("choices"):
        return None
    error = record.get("error") if isinstance(record, Mapping) else None
    if not error:
        return CallError(f"a record without a reply came: {_words(json.dumps(record))}", True)
    status, message = (_status(error), error.get("message")) if isinstance(error, Mapping) else (0, error)
    return _of(status, _words(message if isinstance(message, str) else json.dumps(error)), None, "")


def _of(status: int, words: str, after_s: float | None, text: str) -> CallError:
    long = status in (0, 400, 413) and any(phrase in words.lower() for phrase in CONTEXT)
    permanent = long or status in PERMANENT or 300 <= status < 400
    advice = (
        ADVICE[413]
        if long
        else "the address has moved: correct api_base"
        if 300 <= status < 400
        else ADVICE.get(status, "")
    )
    message = f"{words}; {advice}" if advice else words
    return CallError(message, not permanent, after_s, text, status in REFUSED)


def _status(error: Mapping[object, object]) -> int:
    """Return the status that an error's record names, 0 if none."""
    for name in ("code", "status", "status_code"):
        value = error.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
            value = int(value)
        if isinstance(value, int) and 300 <= value < 600:
            return value
    return 0


def _words(text: str) -> str:
    """Return a server's words in one line of printable characters; of a page in HTML the first of its text."""
    if found := PAGE.search(text := text[: 10 * MOST]):
        shown = " ".join(html.unescape(TAGS.sub(" ", text[found.start() :])).split())
        text = f"{text[: found.start()]} a page in HTML: {shown[:OF_PAGE]}"
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 10 * MOST]).split())[:MOST]


def _retry_after(error: Exception) -> float | None:
    """Return the seconds until the time that the server names in Retry-After, if any."""
    response = getattr(getattr(error, "response", None), "headers", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(error, "headers", None), response):
        value = str((headers or {}).get("retry-after"))
        with contextlib.suppress(ValueError):
            return max(0.0, float(value))
        with contextlib.suppress(ValueError, OverflowError):
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    return None


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
