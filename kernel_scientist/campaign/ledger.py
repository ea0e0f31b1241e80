"""Book-keeping of the kernels in progress: their names, jobs and sources. Only the engine's thread uses it."""

import heapq

from kernel_scientist.campaign.job import Job
from kernel_scientist.compile.fingerprint import fingerprint
from kernel_scientist.population.lineage import Population, free_names


class Ledger:
    """Jobs from the moment that they get a name until their kernel is recorded or dropped."""

    def __init__(self, population: Population) -> None:
        self.population = population
        self.jobs: dict[str, Job] = {}
        """Jobs in progress by kernel name."""
        self.duplicates: set[tuple[str | None, str]] = set()
        """Experiments (base, title) whose source had been tried already."""
        self._claims: dict[str, str] = {}
        """Names of jobs by the fingerprints of their sources."""
        self._new_names = free_names(population)
        self._returned: list[str] = []

    def __len__(self) -> int:
        """Return the number of kernels in progress, without those that were recorded a moment ago."""
        return sum(name not in self.population for name in self.jobs)

    def name(self) -> str:
        """Return an unused kernel name, the lowest one; `open` a job of this name or `give_back` it."""
        return heapq.heappop(self._returned) if self._returned else next(self._new_names)

    def open(self, job: Job) -> Job:
        """Enter a job."""
        self.jobs[job.name] = job
        return job

    def tuning(self) -> list[Job]:
        """Return the tuning jobs in progress."""
        return [job for job in self.jobs.values() if job.tuned_from]

    def claim(self, job: Job, source: str) -> bool:
        """Whether a job's source is new: neither tried nor in progress. An experiment that is not new is noted."""
        key = fingerprint(source)
        if not self.population.has_source(key) and self._claims.setdefault(key, job.name) == job.name:
            return True
        if job.experiment:
            self.duplicates.add((job.base, job.experiment.title))
        return False

    def close(self, name: str) -> None:
        """Remove a job whose kernel is recorded."""
        del self.jobs[name]
        self._claims = {key: owner for key, owner in self._claims.items() if owner != name}

    def drop(self, job: Job) -> None:
        """Remove a job that gave no kernel; its name can be used again."""
        self.close(job.name)
        heapq.heappush(self._returned, job.name)
