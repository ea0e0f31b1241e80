"""A local server with OpenAI's chat protocol, streaming or not: its script decides each response, failures included."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANG_S = 30
POLL_S = 0.02
"""Interval at which a server looks whether it is to end."""


@dataclass(frozen=True)
class Response:
    """The response to one request."""

    text: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    finish: str = "stop"
    tokens: tuple[int, int] | None = (1000, 200)
    """Reported usage (input, output); None: not reported."""
    drop_after: int | None = None
    """Characters after which the connection is closed."""
    hang: bool = False
    beside: tuple[dict[str, Any], ...] = ()
    """Deltas of a stream before the text: reasoning, calls of tools."""
    drip_s: float = 0.0
    """Pause before every few characters."""
    raw: tuple[bytes, ...] = ()
    """The bytes of the whole HTTP response, sent piece by piece in place of all else; `drip_s` before each piece."""
    reset: bool = False
    """The connection is reset after `raw`, not closed."""


Script = Callable[[dict[str, Any], int], Response]
"""Returns the response for a request's body and its number."""


class ModelServer:
    """A running server; `requests` are the bodies it received."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.listed: Response | None = None
        """The response to a GET of the list of models; None: there is no GET (status 501)."""
        self.pages: dict[str, Response] = {}
        """Responses to a GET of single paths instead."""
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Paths and headers of the GET requests."""
        self.closed = threading.Event()
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

            def do_GET(self) -> None:
                outer.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                found = outer.pages.get(self.path) or outer.listed or Response("null", 501)
                _whole(self, found.status, json.loads(found.text), found.headers)

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, args=(POLL_S,), daemon=True).start()

    def close(self) -> None:
        """Stop the server and release hanging requests."""
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler, body: dict[str, Any], response: Response) -> None:
        if response.hang:
            self.closed.wait(HANG_S)
            handler.close_connection = True
            return
        if response.raw or response.reset:
            self._bytes(handler, response)
        elif response.status != 200:
            error = {
                "error": {"message": response.text or "scripted", "type": "scripted", "code": str(response.status)}
            }
            _whole(handler, response.status, error, response.headers)
        elif body.get("stream"):
            self._stream(handler, body, response)
        else:
            message = {"role": "assistant", "content": response.text}
            choices = [{"index": 0, "message": message, "finish_reason": response.finish}]
            whole = {"id": "x", "object": "chat.completion", "created": 1, "model": body["model"], "choices": choices}
            _whole(handler, 200, {**whole, "usage": _usage(response)}, response.headers)

    def _bytes(self, handler: BaseHTTPRequestHandler, response: Response) -> None:
        handler.close_connection = True
        for piece in response.raw:
            if response.drip_s and self.closed.wait(response.drip_s):
                return
            handler.wfile.write(piece)
            handler.wfile.flush()
        if response.reset:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()

    def _stream(self, handler: BaseHTTPRequestHandler, body: dict[str, Any], response: Response) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        frame = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        for delta in response.beside:
            index = delta.get("of_choice", 0)
            sent = {name: value for name, value in delta.items() if name != "of_choice"}
            _event(handler, {**frame, "choices": [{"index": index, "delta": sent, "finish_reason": None}]})
        size = 16 if response.drip_s else max(64, len(response.text) // 50)
        for start in range(0, len(response.text), size):
            if response.drip_s:
                time.sleep(response.drip_s)
            piece = response.text[start : start + size]
            if response.drop_after is not None and start + size > response.drop_after:
                handler.wfile.flush()
                handler.connection.close()
                return
            delta = {"role": "assistant", "content": piece}
            _event(handler, {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        if response.drop_after is not None:
            handler.connection.close()
            return
        _event(handler, {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": response.finish}]})
        if usage := _usage(response):
            _event(handler, {**frame, "choices": [], "usage": usage})
        handler.wfile.write(b"data: [DONE]\n\n")


def _usage(response: Response) -> dict[str, int] | None:
    if response.tokens is None:
        return None
    inputs, outputs = response.tokens
    return {"prompt_tokens": inputs, "completion_tokens": outputs, "total_tokens": inputs + outputs}


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
    """Run a server during a block."""
    server = ModelServer(script)
    try:
        yield server
    finally:
        server.close()
