"""The kernels in progress: their names, jobs and sources. Only the engine's thread changes the ledger."""

import heapq
import itertools
import logging
import time

from pydantic import Field

from kernel_scientist.compilers.fingerprint import fingerprint
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.base import Record
from kernel_scientist.records.kernel import Author, Experiment, Kernel, Language, Origin
from kernel_scientist.scientist.proposals import Draft, ExperimentTask

progress = logging.getLogger("kernel_scientist.progress")


class Job(Record):
    """The name that a kernel will have and its origin. First kernels and tuning jobs have no experiment."""

    name: str = ""
    """Given by the ledger."""
    generation: int
    began_s: float = Field(default_factory=time.time)
    """Seconds since the epoch."""
    seed_file: str | None = None
    """File of a first kernel: a seed, or with an `origin` the standing champion."""
    origin: Origin | None = None
    base: str | None = None
    reference: str | None = None
    experiment: Experiment | None = None
    failed: tuple[str, ...] = ()
    """Kernels that were to implement the same experiment and failed."""
    tuned_from: str | None = None
    """The kernel whose tunables are searched."""
    incumbent: str = ""
    """The incumbent when the experiment was designed."""
    authors: dict[str, Author] = Field(default_factory=dict[str, Author])

    @property
    def title(self) -> str:
        """Return a short description."""
        if self.experiment:
            return self.experiment.title
        if self.origin:
            return self.origin.words
        return f"tuning {self.tuned_from}" if self.tuned_from else "seed"

    def experiment_task(self) -> ExperimentTask:
        """Return the writer's task; only jobs with an experiment have one."""
        assert self.base is not None and self.reference is not None and self.experiment is not None
        what = {"base": self.base, "reference": self.reference, "experiment": self.experiment, "failed": self.failed}
        return ExperimentTask.model_validate({"name": self.name, **what})

    def kernel(self, draft: Draft, language: Language) -> Kernel:
        """Return the job's kernel with the draft's source."""
        return Kernel(
            name=self.name,
            language=language,
            source=draft.source,
            base=self.base,
            origin=self.origin,
            reference=self.reference,
            experiment=self._experiment(draft),
            generation=self.generation,
            report=draft.report,
            llm_calls=draft.llm_calls,
            transcript=draft.transcript,
            authors={**self.authors, "writer": draft.author} if self.experiment else {},
        )

    def _experiment(self, draft: Draft) -> Experiment | None:
        """Return the job's experiment; if the writer states its own, that one, as the same hypothesis."""
        if draft.experiment is None or self.experiment is None:
            return draft.experiment or self.experiment
        return draft.experiment.model_copy(update={"hypothesis": self.experiment.hypothesis})


class Ledger:
    """Jobs from the moment that they get a name until their kernel is recorded or dropped."""

    def __init__(self, population: Population) -> None:
        self.population = population
        self.tried = len(population)
        """Number of kernels that are recorded or in progress."""
        self.jobs: dict[str, Job] = {}
        """Jobs in progress by kernel name."""
        self.activities: dict[str, str] = {}
        """What is being done on a kernel, by its name."""
        self.duplicates: set[tuple[str | None, str]] = set()
        """Experiments (base, title) whose source had been tried already."""
        self._claims: dict[str, str] = {}
        """Names of jobs by the fingerprints of their sources."""
        self._numbers = itertools.count(1)
        self._returned: list[str] = []

    def __len__(self) -> int:
        """Return the number of kernels in progress, without those that were recorded a moment ago."""
        return sum(name not in self.population for name in list(self.jobs))

    def open(self, job: Job) -> Job:
        """Enter a job and give it the lowest unused name, from `k00001`, also one that a killed run left unused."""
        new = (name for number in self._numbers if (name := f"k{number:05d}") not in self.population)
        name = heapq.heappop(self._returned) if self._returned else next(new)
        self.jobs[name] = job.model_copy(update={"name": name})
        self.tried += 1
        return self.jobs[name]

    def change(self, job: Job, **changes: str) -> Job:
        """Change a job that has not begun; return it."""
        self.jobs[job.name] = job.model_copy(update=changes)
        return self.jobs[job.name]

    def tuning(self) -> list[Job]:
        """Return the tuning jobs in progress."""
        return [job for job in list(self.jobs.values()) if job.tuned_from]

    def claim(self, job: Job, source: str) -> bool:
        """Whether a job's source is new: neither tried nor in progress. One that is not new is noted, and told."""
        key = fingerprint(source)
        if not self.population.has_source(key) and self._claims.setdefault(key, job.name) == job.name:
            return True
        if job.experiment:
            self.duplicates.add((job.base, job.experiment.title))
            progress.debug("%s (%s): its source repeats a kernel that was tried already", job.name, job.title)
        return False

    def close(self, name: str) -> None:
        """Remove a job whose kernel is recorded."""
        del self.jobs[name]
        self.activities.pop(name, None)
        self._claims = {key: owner for key, owner in self._claims.items() if owner != name}

    def drop(self, job: Job) -> None:
        """Remove a job that gave no kernel; its name can be used again."""
        self.close(job.name)
        self.tried -= 1
        heapq.heappush(self._returned, job.name)
