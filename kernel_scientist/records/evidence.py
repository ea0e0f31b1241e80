"""What `export --evidence` writes and `verify` returns."""

from kernel_scientist.records.base import Record
from kernel_scientist.records.kernel import Case, Experiment, Language, Origin, Verdict, Work


class Manifest(Record):
    """What an archive of evidence is about."""

    format: int
    """Version of the format."""
    created: str
    """When it was written, in UTC."""
    campaign: str
    """The campaign."""
    kernel: str
    """The kernel's name in it."""
    problem: str
    """Name of the problem."""
    target: str
    """Name of the resolved target."""
    run: str
    """Id of the kernel's MLflow run."""
    files: dict[str, str]
    """sha256 of every other file of the archive by name."""


class Ancestor(Record):
    """A kernel of a lineage. Its source is a file of the archive."""

    name: str
    """Its name in the campaign."""
    language: Language
    """Language of its source."""
    generation: int
    """Generation of its experiment; 0 for a seed."""
    digest: str
    """sha256 of its source."""
    base: str | None
    """Name of its base, the next of the lineage; None for its end."""
    origin: Origin | None
    """Set if an earlier campaign made it."""
    experiment: Experiment | None
    """The experiment that it implements."""
    verdict: Verdict
    """Its verdict."""
    diff: str
    """Difference from its base, as it was recorded; empty without a base."""


class Lineage(Record):
    """The kernel, its base, the base's base and so on, to a seed or a standing champion."""

    kernels: tuple[Ancestor, ...]
    """The kernel itself first."""


class CaseEvidence(Record):
    """A case and what its generator makes of it."""

    case: Case
    """Sizes and seed."""
    work: Work
    """Least work."""
    inputs: str
    """sha256 of the inputs that the generator makes with the case's seed; empty if it could not be run."""


class ProblemEvidence(Record):
    """The problem and its cases."""

    name: str
    """Its name."""
    digest: str
    """Digest of the files that define it."""
    device: str
    """Device for which it was loaded."""
    compat: str
    """How cases are passed to the generator."""
    profile: str
    """Name of the profile."""
    generated_by: str
    """Version of torch and processor that generated the inputs."""
    reference: str
    """Digest of the reference's source in the form of a kernel."""
    tests: tuple[CaseEvidence, ...]
    """Checking cases."""
    benchmarks: tuple[CaseEvidence, ...]
    """Timed cases."""
    held_out: tuple[CaseEvidence, ...]
    """Cases of the confirmation that a search never sees."""


class EnvironmentEvidence(Record):
    """Where and how the kernel was evaluated."""

    evaluator: str
    """Digest of the code that determined verdict and times; empty if nothing was timed."""
    environment: dict[str, str]
    """Machine, load, versions and settings of the measurement."""
    params: dict[str, str]
    """Parameters of the campaign by their full names, without those of models and stores."""
    resumed_with: str
    """Parameters that changed when the campaign was last resumed: the kernel may be from before."""


class EvidenceResult(Record):
    """The result of `export --evidence`."""

    file: str
    """The archive."""
    campaign: str
    """The campaign."""
    kernel: str
    """The kernel."""
    files: tuple[str, ...]
    """Names of the files in it."""


class Difference(Record):
    """A statement of an archive that is not what it should be."""

    what: str
    """File and figure."""
    stated: str
    """What the archive says."""
    recomputed: str
    """What follows from its other contents, or from the installed problem."""


class Unchecked(Record):
    """What was not checked."""

    what: str
    """The statement."""
    why: str
    """The reason."""


class VerificationResult(Record):
    """The result of `verify`."""

    archive: str
    """The archive."""
    campaign: str
    """The campaign that it names."""
    kernel: str
    """The kernel that it names."""
    checked: int
    """Number of statements that were compared."""
    differences: tuple[Difference, ...]
    """Those that differ."""
    unchecked: tuple[Unchecked, ...]
    """What could not be checked."""

    @property
    def agrees(self) -> bool:
        """Whether everything that was compared agrees."""
        return not self.differences
