"""What is judged: cases, kernels, where they come from. Frozen, typed, JSON both ways."""

import hashlib
from enum import StrEnum
from typing import Literal

from pydantic import Field, model_validator

from kernel_scientist.records.base import Finite, Record

REFERENCE = "reference"
"""The name under which a problem's reference is timed."""
Language = Literal["cpp", "triton", "hip", "cuda"]


class Verdict(StrEnum):
    """What came of a kernel. `infrastructure` says nothing about the kernel: it is retried and is never a score."""

    OK = "ok"
    COMPILE_ERROR = "compile_error"
    INCORRECT = "incorrect"
    REJECTED = "rejected"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    INFRASTRUCTURE = "infrastructure"


class Case(Record):
    """One set of sizes. The seed of a published case is fixed; timed calls draw secret ones."""

    sizes: dict[str, int]
    seed: int

    @property
    def name(self) -> str:
        """A stable name for columns and metrics, such as `m64-n576-k512`."""
        return "-".join(f"{key}{value}" for key, value in self.sizes.items())


class Work(Record):
    """What a case must do at the least, for the roofline."""

    flops: Finite
    bytes: Finite
    dtype: str


class Experiment(Record):
    """A hypothesis with a plan (papers: GPU Kernel Scientist, section 3.2)."""

    title: str
    """Short and stable: the name of the transformation, or a headline."""
    description: str
    """What is changed and why it should be faster: the hypothesis."""
    rubric: tuple[str, ...]
    """Concrete edits."""
    uplift: tuple[Finite, Finite]
    """Predicted uplift [min, max] in percent of speed."""
    innovation: int = Field(ge=0, le=100)

    @model_validator(mode="after")
    def _ordered(self) -> "Experiment":
        if self.uplift[0] > self.uplift[1]:
            raise ValueError(f"uplift {self.uplift}: the minimum is above the maximum")
        return self


class Ask(Record):
    """One question to a model, and what the reply came to."""

    role: str
    place: str
    """Where in the campaign: `write/k00012/0`."""
    model: str
    key: str
    """Of the reply in the archive."""
    prompt: str
    """Digest of the prompt's templates: what was the same for all kernels."""
    input_tokens: int
    output_tokens: int
    usd: Finite
    """What the reply cost when it was paid for."""
    seconds: Finite
    recalled: bool = False
    """It was in the archive: nothing was paid."""
    fault: str = ""
    """Why the reply could not be read."""


class Author(Record):
    """Who played a role: a model, or the playbook; and the digest of the prompt's templates it had."""

    model: str
    prompt: str = ""

    @staticmethod
    def of(asks: "tuple[Ask, ...]") -> "Author":
        """Return the model that answered last; the playbook where none was asked."""
        return Author(model=asks[-1].model, prompt=asks[-1].prompt) if asks else Author(model="playbook")


class Attempt(Record):
    """A version of a kernel that failed and was mended."""

    source: str
    verdict: Verdict
    reason: str
    bug: str
    """Class of the bug: A.1 to C.4 (see `scientist.bugs`)."""
    critique: str = ""
    """What the Repairer says is wrong."""


class Try(Record):
    """A configuration of a kernel's tunables, put through the judge beside the kernel as it was."""

    values: dict[str, int | float | str]
    source: str
    verdict: Verdict
    reason: str = ""
    log2_ratio: Finite | None = None
    """How many times faster than the untuned kernel, as a power of two; none where it is not right."""
    seconds: Finite = 0.0


class Kernel(Record):
    """A source in one language that solves a problem."""

    name: str
    """`k00042`, unique within its campaign."""
    language: Language
    source: str
    base: str | None = None
    """Name of the kernel it was changed from; none for a seed."""
    reference: str | None = None
    """Name of the kernel it was contrasted with."""
    experiment: Experiment | None = None
    generation: int = 0
    report: str = ""
    """What the writer says was really done."""
    asks: tuple[Ask, ...] = ()
    """What models were asked for it."""
    attempts: tuple[Attempt, ...] = ()
    """Its versions that failed before this one, oldest first."""
    authors: dict[str, Author] = Field(default_factory=dict[str, Author])
    """By role."""
    tuned_from: str | None = None
    """Name of the kernel whose tunables were searched: this is its best other configuration."""
    tries: tuple[Try, ...] = ()
    """The configurations that were tried for it."""

    @property
    def digest(self) -> str:
        """sha256 of the source."""
        return digest(self.source)


def digest(text: str) -> str:
    """Return the sha256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
