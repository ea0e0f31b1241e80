"""What is on its way to be a kernel: a seed, an experiment, or a kernel whose numbers are searched."""

from pydantic import Field

from kernel_scientist.records.base import Record
from kernel_scientist.records.kernel import Author, Experiment, Kernel, Language
from kernel_scientist.scientist.roles import Commission, Draft


class Job(Record):
    """The name that the kernel will have, and what it starts from. A seed has no experiment."""

    name: str
    generation: int
    seed_file: str | None = None
    base: str | None = None
    reference: str | None = None
    experiment: Experiment | None = None
    tuned_from: str | None = None
    """The kernel whose tunables are to be searched, instead of an experiment."""
    authors: dict[str, Author] = Field(default_factory=dict[str, Author])

    @property
    def title(self) -> str:
        """What is done, in a few words."""
        if self.experiment:
            return self.experiment.title
        return f"tuning {self.tuned_from}" if self.tuned_from else "seed"

    def commission(self) -> Commission:
        """Return the order for the Writer; of an experiment only."""
        assert self.base is not None and self.reference is not None and self.experiment is not None
        return Commission(name=self.name, base=self.base, reference=self.reference, experiment=self.experiment)

    def kernel(self, draft: Draft, language: Language) -> Kernel:
        """Return the kernel that a draft makes of it."""
        return Kernel(
            name=self.name,
            language=language,
            source=draft.source,
            base=self.base,
            reference=self.reference,
            experiment=self.experiment,
            generation=self.generation,
            report=draft.report,
            asks=draft.asks,
            authors={**self.authors, "writer": Author.of(draft.asks)} if self.experiment else {},
        )
