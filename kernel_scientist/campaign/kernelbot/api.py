"""KernelBot's HTTP API (github.com/gpu-mode/kernelbot): submit a file, follow it, list one's submissions.

Address and id of the user come from popcorn-cli's own file or the environment, and are never logged. Unknown fields of
answers are ignored; a secret seed is dropped before it is read.
"""

import json
import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from httpx_sse import connect_sse
from pydantic import BaseModel, ConfigDict, Field, field_validator

from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.yaml_text import read_mapping

URL = "https://site--bot--dxfjds728w5v.code.run"
"""popcorn-cli's default server."""
FILE = ".popcorn.yaml"
"""popcorn-cli's file in the home folder."""
TIMEOUT = httpx.Timeout(30.0, read=60.0)
LISTED = 100
"""Most submissions of one listing."""
WAIT_S = 30.0
"""Wait after a 429 that names no time."""
Event = tuple[str, dict[str, Any]]
ENDED = ("succeeded", "failed", "timed_out", "hacked")
SECRET = "secret_seed"


class ApiAnswer(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RunnerJob(ApiAnswer):
    """The state of a submission on its runner."""

    status: str = "initial"
    error: str | None = None


class Run(ApiAnswer):
    """One run of a submission: its test, benchmark or ranked run, public or with the secret seed."""

    mode: str
    secret: bool = False
    passed: bool = False
    runner: str | None = None
    score: float | None = None
    """Seconds; ranked runs only."""
    result: dict[str, str] = Field(default_factory=dict)
    """What the task's `eval.py` printed; public test and benchmark runs only."""

    @field_validator("score", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) and value else value or None

    @field_validator("result", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        return {str(k): str(v) for k, v in value.items() if k != SECRET} if isinstance(value, dict) else {}


class Listed(ApiAnswer):
    """A submission in the user's list."""

    id: int
    file_name: str = ""


class Submission(Listed):
    """A submission and what is known of it."""

    done: bool = False
    runs: tuple[Run, ...] = ()
    job: RunnerJob | None = None

    @field_validator("runs", mode="before")
    @classmethod
    def _list(cls, value: Any) -> Any:
        return value or ()

    @property
    def state(self) -> str:
        """The job's state; `succeeded` if the server only says that it is done."""
        return self.job.status if self.job else "succeeded" if self.done else "initial"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.done or self.state in ENDED


def loads(text: str) -> Any:
    """Return an answer's JSON without any secret seed, at any depth."""
    return json.loads(text, object_pairs_hook=lambda pairs: {k: v for k, v in pairs if k != SECRET})


@dataclass(frozen=True)
class Credentials:
    """Where the leaderboard is, and who asks."""

    url: str
    cli_id: str = field(repr=False)


def credentials() -> Credentials:
    """Return the user's credentials: `POPCORN_API_URL` and `POPCORN_CLI_ID`, else popcorn-cli's file.

    Raises SetupError if there is no id.
    """
    cli_id = os.environ.get("POPCORN_CLI_ID", "")
    file = Path.home() / FILE
    if not cli_id and file.is_file():
        cli_id = str(read_mapping(file).get("cli_id") or "")
    if not cli_id:
        raise SetupError(
            f"target 'kernelbot' needs your id at the leaderboard: run `popcorn register discord`, which writes "
            f"{file}, or set POPCORN_CLI_ID"
        )
    return Credentials(os.environ.get("POPCORN_API_URL", URL).rstrip("/"), cli_id)


class RefusedError(Exception):
    """The leaderboard does not accept the request, and would not if it were repeated."""


class BusyError(Exception):
    """Too many requests: nothing was accepted; ask again after `wait_s` seconds."""

    def __init__(self, reason: str, wait_s: float) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class UnclearError(Exception):
    """No answer, or a fault of the server: a submission may or may not have been accepted."""


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except httpx.HTTPError as error:
        raise UnclearError(f"{type(error).__name__}: {error}") from error
    except (ValueError, KeyError, TypeError) as error:  # pydantic's ValidationError is a ValueError
        raise UnclearError(f"an answer that cannot be read: {error}"[:500]) from error


class Api:
    """Requests to the leaderboard. Every method raises RefusedError, BusyError or UnclearError."""

    def __init__(self, credentials: Credentials) -> None:
        identity, hooks = {"X-Popcorn-Cli-Id": credentials.cli_id}, {"response": [_require_good]}
        self._client = httpx.Client(base_url=credentials.url, headers=identity, timeout=TIMEOUT, event_hooks=hooks)

    @_translated()
    def gpus(self, board: str) -> list[str]:
        """Return the GPUs of a leaderboard."""
        return [str(name) for name in self._get(f"/gpus/{board}")]

    @_translated()
    def submit(self, board: str, gpu: str, mode: str, file_name: str, source: str) -> int:
        """Submit a file; return the submission's id."""
        answer = self._client.post(f"/submission/{board}/{gpu}/{mode}", files=_file(file_name, source))
        return int(loads(answer.text)["details"]["id"])

    @contextmanager
    def events(self, board: str, gpu: str, mode: str, file_name: str, source: str) -> Generator[Iterator[Event]]:
        """Submit a file by the streaming variant; yield the events (`status`, `result`, `error`) as they come."""
        path, files = f"/{board}/{gpu}/{mode}", _file(file_name, source)
        with _translated(), connect_sse(self._client, "POST", path, files=files) as answer:
            yield ((event.event, loads(event.data)) for event in answer.iter_sse())

    @_translated()
    def submission(self, number: int) -> Submission:
        """Return a submission."""
        return Submission.model_validate(self._get(f"/user/submissions/{number}"))

    @_translated()
    def recent(self, board: str) -> list[Listed]:
        """Return the user's latest submissions to a leaderboard, latest first."""
        found = self._get("/user/submissions", leaderboard=board, limit=LISTED, offset=0)
        return [Listed.model_validate(one) for one in found]

    def _get(self, path: str, **query: str | int) -> Any:
        return loads(self._client.get(path, params=query).text)


def error_of(data: dict[str, Any]) -> Exception:
    """Return the exception that an `error` event stands for."""
    reason = str(data.get("detail") or data.get("raw_error") or "no reason given")
    return _error(int(data.get("status_code") or 500), reason)


def _file(name: str, source: str) -> dict[str, Any]:
    return {"file": (name, source.encode(), "text/plain")}


def _require_good(response: httpx.Response) -> None:
    if response.is_error:
        response.read()
        raise _error(response.status_code, _reason(response))


def _error(status: int, reason: str) -> Exception:
    if status == 429:
        wait = re.search(r"again in (\d+(?:\.\d+)?)", reason)
        return BusyError(reason, float(wait[1]) if wait else WAIT_S)
    if status < 500 and status != 408:
        return RefusedError(f"{reason} (HTTP {status})")
    return UnclearError(f"{reason} (HTTP {status})")


def _reason(response: httpx.Response) -> str:
    try:
        body = loads(response.text)
    except ValueError:
        body = {}
    words = body.get("detail") or body.get("message") if isinstance(body, dict) else None
    return str(words or response.reason_phrase or "no reason given")[:500]
