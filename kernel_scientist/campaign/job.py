"""A kernel in progress: a seed, an experiment, or the tuning of a kernel."""

import time

from pydantic import Field

from kernel_scientist.records.base import Record
from kernel_scientist.records.kernel import Author, Experiment, Kernel, Language
from kernel_scientist.scientist.proposals import Design, Draft, ExperimentTask, Selection


class Job(Record):
    """The name that the kernel will have and its origin. Seeds and tuning jobs have no experiment."""

    name: str
    generation: int
    began_s: float = Field(default_factory=time.time)
    """Seconds since the epoch."""
    seed_file: str | None = None
    base: str | None = None
    reference: str | None = None
    experiment: Experiment | None = None
    tuned_from: str | None = None
    """The kernel whose tunables are searched."""
    authors: dict[str, Author] = Field(default_factory=dict[str, Author])

    @staticmethod
    def of(name: str, generation: int, selection: Selection, design: Design, experiment: Experiment) -> "Job":
        """Return the job of an experiment."""
        return Job(
            name=name,
            generation=generation,
            base=selection.base,
            reference=selection.reference,
            experiment=experiment,
            authors={"selector": Author.of(selection.llm_calls), "designer": Author.of(design.llm_calls)},
        )

    @property
    def title(self) -> str:
        """Return a short description."""
        if self.experiment:
            return self.experiment.title
        return f"tuning {self.tuned_from}" if self.tuned_from else "seed"

    def experiment_task(self) -> ExperimentTask:
        """Return the writer's task; only jobs with an experiment have one."""
        assert self.base is not None and self.reference is not None and self.experiment is not None
        return ExperimentTask(name=self.name, base=self.base, reference=self.reference, experiment=self.experiment)

    def kernel(self, draft: Draft, language: Language) -> Kernel:
        """Return the job's kernel with the draft's source."""
        return Kernel(
            name=self.name,
            language=language,
            source=draft.source,
            base=self.base,
            reference=self.reference,
            experiment=draft.experiment or self.experiment,
            generation=self.generation,
            report=draft.report,
            llm_calls=draft.llm_calls,
            authors={**self.authors, "writer": Author.of(draft.llm_calls)} if self.experiment else {},
        )
