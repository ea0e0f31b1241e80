"""A server that speaks OpenAI's chat protocol on this machine, streaming or not, and answers from a script: well, or in
every way in which real ones fail."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANG_S = 30


@dataclass(frozen=True)
class Reaction:
    """What one request gets."""

    text: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    finish: str = "stop"
    tokens: tuple[int, int] | None = (1000, 200)
    """Usage that is reported; None: none is."""
    drop_after: int | None = None
    """Characters after which the connection is cut."""
    hang: bool = False
    drip_s: float = 0.0
    """Pause before every few characters."""


Script = Callable[[dict[str, Any], int], Reaction]
"""From a request's body and its number to what it gets."""


class ModelServer:
    """A running server; `requests` is what it was sent."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.over = threading.Event()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer._lock:
                    outer.requests.append(body)
                    outer.headers.append(dict(self.headers))
                    number = len(outer.requests)
                try:
                    outer._answer(self, body, outer.script(body, number))
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop, and let go of whoever is kept waiting."""
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler, body: dict[str, Any], reaction: Reaction) -> None:
        if reaction.hang:
            self.over.wait(HANG_S)
            handler.close_connection = True
            return
        if reaction.status != 200:
            error = {
                "error": {"message": reaction.text or "scripted", "type": "scripted", "code": str(reaction.status)}
            }
            _whole(handler, reaction.status, error, reaction.headers)
        elif body.get("stream"):
            self._stream(handler, body, reaction)
        else:
            message = {"role": "assistant", "content": reaction.text}
            choices = [{"index": 0, "message": message, "finish_reason": reaction.finish}]
            whole = {"id": "x", "object": "chat.completion", "created": 1, "model": body["model"], "choices": choices}
            _whole(handler, 200, {**whole, "usage": _usage(reaction)}, reaction.headers)

    def _stream(self, handler: BaseHTTPRequestHandler, body: dict[str, Any], reaction: Reaction) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        frame = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        size = 16 if reaction.drip_s else max(64, len(reaction.text) // 50)
        for start in range(0, len(reaction.text), size):
            if reaction.drip_s:
                time.sleep(reaction.drip_s)
            piece = reaction.text[start : start + size]
            if reaction.drop_after is not None and start + size > reaction.drop_after:
                handler.wfile.flush()
                handler.connection.close()
                return
            delta = {"role": "assistant", "content": piece}
            _event(handler, {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        if reaction.drop_after is not None:
            handler.connection.close()
            return
        _event(handler, {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": reaction.finish}]})
        if usage := _usage(reaction):
            _event(handler, {**frame, "choices": [], "usage": usage})
        handler.wfile.write(b"data: [DONE]\n\n")


def _usage(reaction: Reaction) -> dict[str, int] | None:
    if reaction.tokens is None:
        return None
    asked, answered = reaction.tokens
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}


def _event(handler: BaseHTTPRequestHandler, frame: dict[str, Any]) -> None:
    handler.wfile.write(b"data: " + json.dumps(frame).encode() + b"\n\n")
    handler.wfile.flush()


def _whole(handler: BaseHTTPRequestHandler, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
    text = json.dumps(body).encode()
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(text)


@contextmanager
def serving(script: Script) -> Iterator[ModelServer]:
    """Run a server for the time of a block."""
    server = ModelServer(script)
    try:
        yield server
    finally:
        server.close()
