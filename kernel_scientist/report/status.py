"""The status of a campaign: what `kernel-scientist watch` shows of it, and the file in which a running one keeps it."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from kernel_scientist.records import environment
from kernel_scientist.records.base import Finite, Record
from kernel_scientist.tracking import owner

FOLDER = "campaigns"
RUNNING, FINISHED, STOPPED, FAILED, GONE = "running", "finished", "stopped", "failed", "gone"
"""States. Gone: its process has ended without a word."""


class Champion(Record):
    """The champion so far: the incumbent, after the final its winner."""

    kernel: str
    """Its name."""
    title: str
    """Its experiment's title, or where it comes from."""
    speedup: Finite | None
    """How many times faster than the reference; None if it was not measured. Not to be stated without `interval`."""
    interval: tuple[Finite, Finite] | None
    """Interval of that factor; None without one."""
    text: str
    """The factor with its interval, as it may be stated; a predicted share of the roofline's speed on model targets."""
    measured_in: str
    """`its own run`, or `the final`."""
    by_final: bool
    """Whether it won the final against the incumbent, which is another kernel."""
    since_kernels: int
    """How many kernels there were when the incumbent changed last: no kernel since then was faster by a test."""
    since_s: Finite
    """The campaign's wall time in seconds then."""


class Result(Record):
    """What a finished campaign says of its champion: its confirmation, in fresh processes."""

    status: str
    """`confirmed`, `correct` (there was nothing to be faster than, as for a seed that stays), or `not confirmed`."""
    confirmed: bool
    """Whether it was confirmed to be faster than what it had to beat."""
    text: str
    """The factor over the reference with its interval, in the confirmation."""
    why: str
    """What decided."""


class Outcome(Record):
    """What came of a kernel."""

    kernel: str
    """Its name."""
    title: str
    """Its experiment's title, or where it comes from."""
    verdict: str
    """The verdict."""
    speed: str
    """The factor over the reference with its interval; empty without one."""
    reason: str
    """Why, in a sentence; may be empty for an ok kernel."""


class RoleCalls(Record):
    """The calls of models in one role."""

    role: str
    """The role, such as `writer`."""
    calls: int
    """Replies that were paid for."""
    failed: int
    """Calls that gave no reply, or part of one; each attempt counts."""
    truncated: int
    """Calls whose stream ended within the reply."""
    unreadable: int
    """Complete replies that could not be parsed."""
    usd: Finite
    """What they cost."""
    latest_failure: str = ""
    """Why a call failed last; only known of the process that runs the campaign."""


class Limit(Record):
    """A budget."""

    used: Finite
    """How much of it is used."""
    limit: Finite | None
    """None: there is no limit."""

    @property
    def left(self) -> float | None:
        """Return what is left; None without a limit."""
        return None if self.limit is None else max(0.0, self.limit - self.used)


class Noise(Record):
    """How well kernels could be timed; None where nothing was timed yet."""

    in_use: Finite | None
    """The margin of the latest test: the larger of `harness.margin` and this machine's A/A noise."""
    now: Finite | None
    """Median of how far the intervals of the ten latest timings reach from their middles, as a share."""
    load: str
    """The machine's load during the latest timing."""
    others_percent: str
    """Share of the machine's CPU time that others used meanwhile."""


class Status(Record):
    """One campaign at one moment."""

    campaign: str
    """Its id."""
    problem: str
    """Name of the problem."""
    language: str
    """Language of the kernels."""
    target: str
    """Name of the target."""
    folder: str
    """The project's folder; empty if it was read from the MLflow store."""
    process: str
    """The process that runs it, see `tracking.owner`."""
    state: str
    """`running`, `finished`, `stopped`, `failed`, `gone`."""
    why: str = ""
    """Why no further experiment is designed, or why it ended; empty while some are."""
    resume: str = ""
    """The command that goes on with it once it has ended; empty if it did all that it was to do."""
    written_s: Finite
    """When this was so, in seconds since the epoch."""
    elapsed_s: Finite
    """Wall time of the campaign, in seconds; in the store, that when the last kernel was recorded."""
    kernels: int
    """Kernels recorded."""
    planned: int | None
    """Kernels that the parameters ask for; None if it was read from the MLflow store."""
    in_progress: dict[str, str]
    """What is being done, by kernel."""
    champion: Champion | None
    """None while no kernel is correct."""
    result: Result | None
    """None until the campaign is finished, and if it has no champion."""
    per_minute: Finite | None
    """Kernels a minute, since the start."""
    per_minute_now: Finite | None
    """The same of the latest twenty."""
    minutes: Limit
    """`budget.minutes`."""
    usd: Limit
    """`budget.usd`."""
    tokens: Limit
    """`budget.tokens`."""
    budget_kernels: Limit
    """`budget.kernels`."""
    seconds: dict[str, Finite]
    """Where the time went, all threads together, by activity."""
    noise: Noise
    """How well kernels could be timed."""
    latest: tuple[Outcome, ...]
    """The ten latest kernels, the latest last."""
    roles: tuple[RoleCalls, ...]
    """The calls of models, by role."""

    @property
    def fruitless(self) -> int:
        """Return how many kernels were recorded since the incumbent changed last."""
        return self.kernels - (self.champion.since_kernels if self.champion else 0)

    @property
    def shares(self) -> dict[str, float]:
        """Return the share of each activity in the time of all threads, the largest first."""
        total = sum(self.seconds.values())
        ordered = sorted(self.seconds.items(), key=lambda item: -item[1])
        return {activity: seconds / total for activity, seconds in ordered if total and seconds}

    def seen_now(self) -> "Status":
        """Return the status with the state that its process has by now."""
        lost = self.state == RUNNING and owner.is_gone(self.process)
        return self.model_copy(update={"state": GONE}) if lost else self


def file(campaign: str) -> Path:
    """Return the file in which a campaign of this folder keeps its status."""
    return environment.cache_folder() / FOLDER / f"{campaign}.json"


def write(status: Status) -> None:
    """Write a campaign's status. A folder that cannot be written, such as on a full disk, keeps nobody from working."""
    with contextlib.suppress(OSError):
        environment.keep(file(status.campaign), status.model_dump_json())


def read(path: Path) -> Status | None:
    """Return the status in a file; None if there is none, or of another version of this program."""
    try:
        return Status.model_validate_json(path.read_bytes()).seen_now()
    except (OSError, ValidationError):
        return None


def of_this_folder(problem: str = "") -> Status | None:
    """Return the status of the campaign that runs in this folder, else of the latest one; None if there is none.
    `problem`: only of this one's."""
    found = [status for path in file("x").parent.glob("*.json") if (status := read(path))]
    here = str(environment.root())
    own = [status for status in found if status.folder == here and problem in ("", status.problem)]
    return max(own, key=lambda status: (status.state == RUNNING, status.written_s), default=None)


def pace(points: Sequence[tuple[int, float]]) -> float | None:
    """Return kernels a minute between the first and the last of some points (number of kernels, seconds)."""
    if len(points) < 2 or points[-1][1] <= points[0][1]:
        return None
    (first, began_s), (last, ended_s) = points[0], points[-1]
    return 60 * (last - first) / (ended_s - began_s)
