"""The bytes of HTTP responses of an OpenAI-compatible endpoint, to be taken apart in tests."""

import json
from typing import Any

from tests.scientist.model_server import Response

TEXT = "good: 中文 ü"
USAGE = {"prompt_tokens": 70, "completion_tokens": 50, "total_tokens": 120}
DONE = b"data: [DONE]\n\n"
STREAM = "text/event-stream"


def http(body: bytes, kind: str = STREAM, status: str = "200 OK", *headers: str) -> tuple[bytes, ...]:
    """The bytes of a response whose end is that of the connection."""
    head = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close", *headers]
    return ("\r\n".join([*head, "", ""]).encode(), body)


def event(delta: object = None, finish: object = None, index: int = 0, **more: Any) -> bytes:
    """An event of a stream."""
    choices = [] if delta is None else [{"index": index, "delta": delta, "finish_reason": finish}]
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": choices}
    return b"data: " + json.dumps({**chunk, **more}, ensure_ascii=False).encode() + b"\n\n"


def said(text: object = TEXT) -> bytes:
    return event({"role": "assistant", "content": text})


STOP = event({}, "stop")
COUNTED = event(usage=USAGE)
WHOLE = said() + STOP + COUNTED + DONE


def plain(message: object = None, finish: object = "stop", **more: Any) -> bytes:
    """A whole record, as a request without a stream gets."""
    message = {"role": "assistant", "content": TEXT} if message is None else message
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "scripted", "choices": choices}
    return json.dumps({**whole, "usage": USAGE, **more}).encode()


def error(status: str, message: str = "scripted", *headers: str, **more: Any) -> Response:
    return Response(
        raw=http(json.dumps({"error": {"message": message, **more}}).encode(), "application/json", status, *headers)
    )
