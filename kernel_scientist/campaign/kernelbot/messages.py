"""The leaderboard's answers as records. Unknown fields are ignored; a secret seed is dropped before it is read."""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

JobState = Literal["initial", "pending", "running", "succeeded", "failed", "timed_out", "hacked"]
ENDED: tuple[JobState, ...] = ("succeeded", "failed", "timed_out", "hacked")
SECRET = "secret_seed"


class Message(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Job(Message):
    """The state of a submission on its runner."""

    status: str = "initial"
    error: str | None = None


class Run(Message):
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


class Submission(Message):
    """A submission and what is known of it."""

    id: int
    file_name: str = ""
    done: bool = False
    runs: tuple[Run, ...] = ()
    job: Job | None = None

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


class Listed(Message):
    """A submission in the user's list."""

    id: int
    file_name: str = ""


def loads(text: str) -> Any:
    """Return an answer's JSON without any secret seed, at any depth."""
    return json.loads(text, object_pairs_hook=lambda pairs: {k: v for k, v in pairs if k != SECRET})
