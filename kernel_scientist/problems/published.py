"""Times that others published for a problem's cases (`published` in lab.yml), never mixed with ours."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

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


def read(section: Mapping[str, Any] | None, path: Path) -> tuple[PublishedTime, ...]:
    """Return the published times of a lab.yml. Raises SetupError that names what is wrong."""
    given = dict(section or {})
    times: list[dict[str, Any]] = given.pop("times", [])
    try:
        return tuple(
            PublishedTime(
                us=time["us"],
                revision=str(time["revision"]),
                sizes={name: size for name, size in time.items() if name not in ("us", "revision")},
                **given,
            )
            for time in times
        )
    except (KeyError, TypeError, ValidationError) as error:
        raise SetupError(
            f"{path}: published: {error}; it has source, device, includes and times: the sizes of a case, us, revision"
        ) from error


def of_case(times: tuple[PublishedTime, ...], case: Case) -> PublishedTime | None:
    """Return the fastest published time of a case; None if there is none."""
    return min((time for time in times if time.sizes == case.sizes), key=lambda time: time.us, default=None)
