"""The body of an endpoint's response: a stream of events or one document, read until a deadline.

The client's own limit is one of silence: it starts anew with each byte, so a byte a second, or a comment that keeps the
connection open, would never end.
"""

import contextlib
import itertools
import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

import httpx
from typing_extensions import override

from kernel_scientist.scientist.llm.failures import CallError, of_record

MAX_BYTES = 64 << 20
"""A body that is longer is not read to its end."""
END = b"[DONE]"
"""The last event of a stream."""


class Body(httpx.SyncByteStream):
    """A response's bytes as they arrive; it takes their place in the response."""

    def __init__(self, response: httpx.Response, deadline: float) -> None:
        """`deadline`: by the monotonic clock."""
        self.response, self.deadline = response, deadline
        self._source = response.stream
        assert isinstance(self._source, httpx.SyncByteStream)
        self._pieces, self._first, self._size = iter(self._source), list[bytes](), 0
        self._tail = b""
        self.whole = False
        """Whether it is one document, which was read to its end."""
        response.stream = self

    @override
    def __iter__(self) -> Iterator[bytes]:
        for piece in itertools.chain(self._first, self._pieces):
            self._tail = (self._tail + piece)[-64:]
            self._size += len(piece)
            if time.monotonic() > self.deadline or self._size > MAX_BYTES:
                late = self._size <= MAX_BYTES
                raise CallError("the reply did not end in time" if late else f"more than {MAX_BYTES} bytes", True)
            yield piece

    @override
    def close(self) -> None:
        self._source.close()  # type: ignore[reportAttributeAccessIssue]

    @property
    def ended(self) -> bool:
        """Whether the server said that the stream is at its end; unknown, so no, of a compressed one."""
        return END in self._tail

    def is_document(self) -> bool:
        """Whether it is one document, a record or a page, by its first bytes; if it is compressed, by its type."""
        kind = self.response.headers.get("content-type", "").lower()
        if self.response.headers.get("content-encoding", "identity").lower() != "identity":
            return "json" in kind or "html" in kind
        for piece in self._pieces:
            self._first.append(piece)
            if piece.strip(b" \t\r\n\xef\xbb\xbf") or time.monotonic() > self.deadline:
                break
        return b"".join(self._first).lstrip(b" \t\r\n\xef\xbb\xbf")[:1] in (b"{", b"[", b"<") and bool(self._first)

    def document(self) -> object:
        """Return the record that it is. Raises CallError if it is an error or something else."""
        with contextlib.closing(self.response):
            content = b"".join(self.response.iter_bytes()).decode(errors="replace").strip().lstrip("\ufeff")
        try:
            found = json.loads(content)
        except (ValueError, RecursionError) as error:
            if content.startswith("<"):
                raise CallError(
                    "a web page came in place of a reply: is api_base the address of the API?", True
                ) from error
            raise CallError(f"the record of the reply is not complete ({error})", True) from error
        if failure := of_record(found):
            raise failure
        self.whole = True
        return found


def chunks(stream: Any, deadline: float) -> tuple[Iterable[Any], Body | None]:
    """Return the pieces of an answer to litellm's call, and their body if this is OpenAI's protocol.

    These are read as the server sent them: litellm drops refusals, invents an end, and fails on a field of another
    type than it expects.
    """
    import openai

    events = getattr(stream, "completion_stream", None)
    if not isinstance(events, openai.Stream):
        return stream, None
    body = Body(events.response, deadline)
    if body.is_document():
        return [body.document()], body
    return events, body
