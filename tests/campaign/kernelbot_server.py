"""A leaderboard on this machine that speaks KernelBot's HTTP API, faults included.

Written from the API's description. What becomes of a submission stands in its source: `# outcome: STATE`, `# us: TIME`.
"""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

SIZES = (1024, 2048, 4096, 8192, 16384, 32768, 65536)
SECRET_SEED = 987654321
CLI_ID = "a-secret-id"
FAULTS = ("busy", "drop before", "drop after", "503", "500 after", "")


@dataclass
class Board:
    """The state of the server."""

    address: str = ""
    faults: Random | None = None
    """Draws a fault for each submission; None: no faults."""
    polls: int = 1
    """Polls until a submission has ended."""
    accepted: list[dict[str, Any]] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)
    headers: list[dict[str, str]] = field(default_factory=list)
    closed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def accept(self, path: str, file_name: str, source: str) -> int:
        board, gpu, mode = path.strip("/").split("/")[-3:]
        entry = {"file_name": file_name, "code": source, "board": board, "gpu": gpu, "mode": mode}
        with self.lock:
            self.accepted.append(entry)
            return len(self.accepted)

    def fault(self) -> str:
        if self.faults is None:
            return ""
        with self.lock:
            return self.faults.choice(FAULTS)

    def describe(self, number: int, whole: bool = True) -> dict[str, Any]:
        entry = self.accepted[number - 1]
        with self.lock:
            self.seen[number] = self.seen.get(number, 0) + whole
        outcome = found[1] if (found := re.search(r"# outcome: (.+)", entry["code"])) else "succeeded"
        ended = self.seen[number] > self.polls
        state = outcome.split()[0] if ended else ("pending" if self.seen[number] <= 1 else "running")
        base = {"id": number, "leaderboard_name": entry["board"], "file_name": entry["file_name"], "done": ended}
        runs = self.runs(entry, outcome) if ended else []
        if not whole:
            return {**base, "runs": [{"gpu_type": entry["gpu"], "score": "0.1"}] if ended else []}
        job = {"status": state, "error": "the runner says why" if state != "succeeded" else None}
        return {**base, "code": entry["code"], "runs": runs, "job": job, "secret_seed": SECRET_SEED}

    def runs(self, entry: dict[str, Any], outcome: str) -> list[dict[str, Any]]:
        common = {"runner": "GitHub", "start_time": "2025-05-01", "end_time": "2025-05-01"}
        if outcome == "failed":
            return []
        if outcome in ("timed_out", "hacked"):
            return []
        if outcome == "failed test":
            result = {"check": "fail", "test.0.status": "fail", "test.0.error": "mismatch at 7"}
            return [{**common, "mode": "test", "secret": False, "passed": False, "score": None, "result": result}]
        if outcome == "failed crash":
            return [{**common, "mode": "test", "secret": False, "passed": False, "score": None, "result": {}}]
        us = float(found[1]) if (found := re.search(r"# us: ([\d.]+)", entry["code"])) else 100.0
        times = {"check": "pass", "benchmark-count": str(len(SIZES)), "secret_seed": str(SECRET_SEED)}
        for i, size in enumerate(SIZES):
            mean = us * 1e3 * (1 + i / 10)
            times |= {f"benchmark.{i}.spec": f"size: {size}; seed: 1", f"benchmark.{i}.mean": str(mean)}
            times |= {f"benchmark.{i}.err": str(mean * 0.001), f"benchmark.{i}.runs": "100"}
        public = {**common, "secret": False, "passed": True, "score": None}
        runs = [
            {**public, "mode": "test", "result": {"check": "pass"}},
            {**public, "mode": "benchmark", "result": times},
        ]
        if entry["mode"] == "leaderboard":
            runs.append({**public, "mode": "leaderboard", "score": json.dumps(us * 1e-6)})
            secret = outcome != "succeeded secret"
            runs.append({**public, "mode": "leaderboard", "secret": True, "score": us * 1.1e-6, "passed": secret})
        return runs


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    board: Board

    def log_message(self, *_: Any) -> None:
        pass

    def send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def known(self) -> bool:
        self.board.headers.append(dict(self.headers))
        if self.headers.get("X-Popcorn-Cli-Id") == CLI_ID:
            return True
        self.send(401, {"detail": "unknown user"})
        return False

    def do_GET(self) -> None:
        if not self.known():
            return
        path, _, query = self.path.partition("?")
        if path.startswith("/gpus/"):
            known = path == "/gpus/amd-identity"
            self.send(200 if known else 404, ["MI300", "MI250"] if known else {"detail": "unknown leaderboard"})
        elif path == "/user/submissions":
            assert "leaderboard=amd-identity" in query
            numbers = range(len(self.board.accepted), 0, -1)
            self.send(200, [self.board.describe(number, whole=False) for number in numbers][:100])
        else:
            self.send(200, self.board.describe(int(path.rsplit("/", 1)[1])))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.known():
            return
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        part = next(iter(BytesParser(policy=HTTP).parsebytes(head + raw).iter_parts()))
        source, file_name = part.get_payload(decode=True).decode(), str(part.get_filename())
        fault, streaming = self.board.fault(), not self.path.startswith("/submission/")
        if "stream" in source.lower():
            self.send(500, {"message": "internal error"})
        elif "# outcome: refused" in source:
            self.send(400, {"detail": "Submission contains a forbidden import"})
        elif fault == "busy":
            self.send(429, {"detail": "Rate limit exceeded. Try again in 0.05s"})
        elif fault == "503":
            self.send(503, {"message": "KernelGuard unavailable"})
        elif fault == "drop before":
            self.close_connection = True
            self.connection.close()
        else:
            number = self.board.accept(self.path, file_name, source)
            if fault == "drop after":
                self.close_connection = True
                self.connection.close()
            elif fault == "500 after":
                self.send(500, {"message": "database is locked"})
            elif streaming:
                self.events(number)
            else:
                self.send(202, {"details": {"id": number, "job_status_id": number}, "status": "accepted"})

    def events(self, number: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for event, data in (
            ("status", {"status": "processing", "elapsed_time": 0}),
            ("status", {"status": "processing", "elapsed_time": 15, "secret_seed": SECRET_SEED}),
            ("result", {"status": "success", "results": [], "reports": ["done"], "secret_seed": SECRET_SEED}),
        ):
            self.wfile.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())
            self.wfile.flush()
            time.sleep(0.02)


@contextmanager
def serving(board: Board) -> Iterator[Board]:
    """Serve a leaderboard while the context is open."""
    handler = type("BoardHandler", (Handler,), {"board": board})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    board.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield board
    finally:
        server.shutdown()
        server.server_close()
