"""What the steps of first light say, and what they are asked. Imports no torch: on a cold disk that takes a minute."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Facts = Iterator[dict[str, Any]]
"""What a step finds, as soon as it has found it. Exceptions are the step's failure."""


class StepError(RuntimeError):
    """What a step tests is not so."""


class NotHereError(RuntimeError):
    """A step that cannot be shown on the stand-in."""


@dataclass(frozen=True)
class Asked:
    """Where a step is to run."""

    standin: bool = False
    """On the stand-in for a GPU's runtime."""
    without: str = ""
    """Layer of the sandbox that is left out (`layers`); empty: none."""
