"""Results about problems: their list, the description of one, which can be used, times of seeds, imported kernels."""

from pydantic import Field

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.results import Interval


class ImportOrigin(Record):
    """Where an imported problem or kernel came from."""

    address: str
    """Address of the git repository, or the path outside git."""
    path: str
    """Path in the repository; empty outside git."""
    revision: str
    """The commit; outside git the digest of the content."""
    licence: str
    """The licence's first line and its file."""

    def __str__(self) -> str:
        return f"{self.address} {self.path} at {self.revision[:12]}; licence: {self.licence}"


class ProblemRow(Record):
    """A problem in a list."""

    problem: str
    """Its name."""
    about: str
    """The first line of its description; of a broken one what is wrong."""
    needs: tuple[str, ...] = ()
    """What it needs that this machine lacks."""
    is_broken: bool = False
    """Whether its files are wrong."""
    origin: ImportOrigin | None = None
    """Its source, if it was imported."""


class CaseWork(Record):
    """A case with its work."""

    use: str
    """`tests`: it is checked; `benchmarks`: it is timed; `held_out`: a champion is confirmed on it."""
    case: str
    """Name of the case."""
    gflop: Finite | None
    """Least arithmetic in GFLOP; None if it is not known."""
    mbyte: Finite
    """Least traffic in MB."""
    mi300x_floor_us: Finite
    """The roofline's time on an MI300X in us: predicted, not measured."""


class ProblemResult(Record):
    """A problem's description."""

    problem: str
    """Its name."""
    folder: str
    """Its folder, or the folder of its file; empty if it cannot be evaluated here."""
    description: str
    """Its text."""
    origin: ImportOrigin | None = None
    """Its source, if it was imported."""
    needs: tuple[str, ...] = ()
    """What it needs that this machine lacks."""
    unusable: str = ""
    """Why it cannot be evaluated here; empty if it can."""
    seeds: tuple[str, ...] = ()
    """Files of its seeds."""
    imported_seeds: tuple[str, ...] = ()
    """Files of others' kernels from which campaigns start, too."""
    imported_bars: tuple[str, ...] = ()
    """Files of others' kernels that are timed beside champions."""
    assumed: tuple[str, ...] = ()
    """What its files do not say and was assumed."""
    differs_from_leaderboard: tuple[str, ...] = ()
    """How the official harness treats it differently."""
    profiles: dict[str, tuple[CaseWork, ...]] = Field(default_factory=dict[str, tuple[CaseWork, ...]])
    """The cases of each profile."""


class KernelImport(Record):
    """Another's kernel that was imported."""

    kernel: str
    """Its name."""
    problem: str
    """The problem that it is of."""
    use: str
    """`seed`: campaigns start from it; `bar`: it is timed beside champions."""
    language: str
    """Its language; where the file is missing how to get it."""
    origin: ImportOrigin | None
    """Where it came from."""


class Admission(Record):
    """Whether a problem can be used."""

    problem: str
    """Folder and name of the problem."""
    admissible: bool
    """Whether it can be used."""
    reason: str
    """Why it cannot; empty if it can."""
    seconds: Finite
    """How long it took to find out."""


class AdmissionsResult(Record):
    """Which of many problems can be used: the result of `problems admit`."""

    admissible: int
    """How many can be used."""
    of: int
    """Of how many."""
    problems: tuple[Admission, ...]
    """Each of them."""


class SeedResult(Record):
    """A seed beside the reference, in one run. Times are geometric means over the cases, in us."""

    kernel: str
    """Name of the seed."""
    geomean_us: Finite | None
    """Its time; None where nothing is timed."""
    reference_us: Finite | None = None
    """The reference's time."""
    speedup: Finite | None = None
    """The quotient of the two."""
    interval: Interval | None = None
    """Its interval."""


class BaselineResult(Record):
    """The result of `baseline`."""

    problem: str
    """Name of the problem."""
    target: str
    """Name of the resolved target."""
    frozen_cases: int
    """Cases whose frozen outputs are those of the reference."""
    seeds: tuple[SeedResult, ...]
    """The seeds in the campaign's language."""
