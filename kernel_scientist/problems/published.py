"""Times that others published for a problem's cases (`published` in lab.yml), never mixed with ours."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Case


class PublishedTime(Record):
    """The best published time of one case."""

    sizes: dict[str, int]
    us: Finite = Field(gt=0)
    """Microseconds, as published."""
    source: str
    """Who published it, with the licence and what was timed."""
    revision: str
    """Commit of the source."""
    device: str
    includes: str
    """What the time contains: the launch or not, cold or warm caches."""

    @property
    def case(self) -> str:
        """Name of the case."""
        return Case(sizes={**self.sizes}, seed=0).name

    @property
    def origin(self) -> str:
        """What was timed, where, and by whom."""
        return f"{self.source}; {self.device}; {self.includes}"


def read(sections: Sequence[Mapping[str, Any]] | None, path: Path) -> tuple[PublishedTime, ...]:
    """Return the published times of a lab.yml: one section a source. Raises SetupError that names what is wrong."""
    return tuple(time for section in sections or () for time in _section(section, path))


def _section(section: Mapping[str, Any], path: Path) -> tuple[PublishedTime, ...]:
    try:
        given = dict(section)
        times: list[dict[str, Any]] = given.pop("times", [])
        return tuple(
            PublishedTime(
                us=time["us"],
                revision=str(time["revision"]),
                sizes={name: size for name, size in time.items() if name not in ("us", "revision")},
                **given,
            )
            for time in times
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SetupError(
            f"{path}: published: {error}; it is a list of sources, each with source, device, includes and times: the "
            "sizes of a case, us, revision"
        ) from error


def best(times: Sequence[PublishedTime]) -> dict[str, PublishedTime]:
    """Return the fastest published time of each case that has one, by the case's name."""
    return {time.case: time for time in sorted(times, key=lambda time: -time.us)}


def on(times: Sequence[PublishedTime], gpu: str) -> list[PublishedTime]:
    """Return the times on a GPU, by its name in the table of GPUs, such as MI300X."""
    return [time for time in times if gpu.lower() in time.device.lower()]
