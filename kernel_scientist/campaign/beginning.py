"""What a campaign starts from: the problem's seeds, the standing champion, the findings of earlier campaigns.

It is recorded with the campaign, so a resumed one goes on from the same start although another champion stands by then.
"""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_scientist.campaign import champions, designs, hidden_sizes
from kernel_scientist.campaign.ledger import Job
from kernel_scientist.compilers.fingerprint import fingerprint
from kernel_scientist.compilers.source import read_kernel
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Language, Origin, Verdict, digest
from kernel_scientist.records.params import Params
from kernel_scientist.records.text import number_of
from kernel_scientist.scientist.proposals import Draft, Lesson, Lessons, Refutation
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore
from kernel_scientist.tracking.subject import Subject

FILE = "beginning.json"
"""Artifact of a campaign's run."""
MOST_CAMPAIGNS = 5
"""Earlier campaigns whose findings are carried over: the latest."""
HINT = "--set search.from=seeds starts from the seeds alone"


class Start(Record):
    """What a campaign starts from, as it is recorded."""

    seeds: tuple[str, ...] = ()
    """Names of the seeds."""
    origin: Origin | None = None
    """None: no champion."""
    source: str = ""
    """The champion's source at that moment."""
    findings: tuple[Lesson, ...] = ()
    """Of earlier campaigns, newest first."""
    refuted: tuple[Refutation, ...] = ()
    """What earlier campaigns refuted, newest first."""
    remark: str = ""
    """Why there is no champion."""

    @property
    def words(self) -> str:
        """Return what the campaign starts from."""
        parts = [f"the seed{'s' if len(self.seeds) > 1 else ''} {', '.join(self.seeds)}"]
        parts += [self.origin.words] if self.origin else []
        if count := len(self.findings):
            parts.append(f"{number_of(count, 'finding')} of earlier campaigns")
        if count := len(self.refuted):
            parts.append(f"{number_of(count, 'refutation')} of earlier campaigns")
        remark = "; ".join(filter(None, (self.remark, HINT if len(parts) > 1 else "")))
        return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) + (f"; {remark}" if remark else "")

    def told(self, population: Population) -> str:
        """Return what the campaign started from, and what is wrong with the champion here, if anything is."""
        first = (population.get(entry.name) for entry in reversed(population.generation(0)))  # the last try
        champion = next((trial for trial in first if trial.kernel.origin), None)
        if champion is None or champion.evaluation.verdict is Verdict.OK:
            return f"started from {self.words}"
        why = champion.evaluation.verdict.because(champion.evaluation.reason)
        return f"started from {self.words}; that champion, here {champion.kernel.name}, is of no use: {why}"


@dataclass(frozen=True)
class Beginning:
    """The first kernels of a campaign."""

    seeds: Sequence[Path]
    start: Start

    def __len__(self) -> int:
        """Return the number of first kernels."""
        return len(self.seeds) + (self.start.origin is not None)

    def jobs(self, population: Population) -> list[Job]:
        """Return jobs for the first kernels that were not tried yet: the seeds, then the champion.

        So the champion is timed against the best seed, which shows here and now how much faster it is.
        """
        jobs = [(Job(generation=0, seed_file=str(file)), file.read_text()) for file in self.seeds]
        if origin := self.start.origin:
            jobs.append((Job(generation=0, seed_file=champions.SOURCE, origin=origin), self.start.source))
        return [job for job, source in jobs if not population.has_source(digest(source))]

    def lessons(self, own: Lessons) -> Lessons:
        """Return a campaign's own findings, with the earlier ones that it started from."""
        return own.model_copy(update={"earlier": own.earlier or self.start.findings, "refuted": self.start.refuted})

    def draft(self, job: Job) -> Draft:
        """Return the kernel of a first job. Raises SetupError for a seed that cannot be read any more."""
        if job.origin is not None:
            return Draft(source=self.start.source, report=job.origin.words)
        assert job.seed_file is not None
        return Draft(source=read_kernel(Path(job.seed_file)), report=f"seed {Path(job.seed_file).name}")


def name(problem: Problem, address: Address) -> str:
    """Return a new campaign's id: date and time, and an end that tells apart those that a schedule starts at once."""
    return f"{problem.slug}-{address.name}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def new(params: Params, problem: Problem, address: Address, store: MlflowStore | None) -> Beginning:
    """Return what a new campaign starts from, by `search.from`; without a `store` it is not asked for findings.

    Raises SetupError for a problem without seeds.
    """
    seeds = seeds_of(problem, params.language)
    names = tuple(file.stem for file in seeds)
    if params.search.from_ == "seeds":
        return Beginning(seeds, Start(seeds=names, remark="search.from is seeds: nothing of earlier campaigns"))
    origin, source, remark = _champion(champions.folder(problem.name, params.language, address.name), seeds)
    hidden_sizes.require_unstated(params, problem, address, source)
    start = Start(seeds=names, origin=origin, source=source, remark=remark)
    if store:
        subject = Subject(problem.name, params.language, address.name)
        refuted = designs.refuted(store, store.campaigns(subject, MOST_CAMPAIGNS))
        start = start.model_copy(update={"findings": earlier(store, subject), "refuted": refuted})
    return Beginning(seeds, start)


def seeds_of(problem: Problem, language: Language) -> list[Path]:
    """Return the seeds of a problem. Raises SetupError if there are none."""
    if not (seeds := problem.seeds(language)):
        raise SetupError(f"problem {problem.name} has no seeds for {language} in {problem.folder}")
    return seeds


def recorded(store: MlflowStore, run: CampaignRun, seeds: Sequence[Path] = ()) -> Beginning:
    """Return what a recorded campaign started from; only seeds for one of an older version."""
    text = store.text(run, FILE)
    return Beginning(seeds, Start.model_validate_json(text) if text else Start(seeds=tuple(s.stem for s in seeds)))


def record(store: MlflowStore, run: CampaignRun, beginning: Beginning) -> None:
    """Record what a campaign starts from."""
    store.log_text(run, FILE, beginning.start.model_dump_json(indent=1))


def _champion(place: Path, seeds: Sequence[Path]) -> tuple[Origin | None, str, str]:
    """Return origin and source of the standing champion in a folder, or nothing and why."""
    origin, nothing = champions.origin(place), (None, "")
    if origin is None:
        return (*nothing, "there was no standing champion")
    try:
        source = read_kernel(place / champions.SOURCE)
    except SetupError as error:
        return (*nothing, f"the standing champion is of no use: {error}")
    same = next((file.stem for file in seeds if fingerprint(file.read_text()) == fingerprint(source)), None)
    return (*nothing, f"the standing champion is the seed {same}") if same else (origin, source, "")


def earlier(store: MlflowStore, subject: Subject) -> tuple[Lesson, ...]:
    """Return the valid findings of the latest campaigns of a subject, newest first.

    A finding that a later campaign retracted is left out.
    """
    retracted, found = set[tuple[str, str]](), list[Lesson]()
    for run in store.campaigns(subject, MOST_CAMPAIGNS):
        lessons = store.lessons(run)
        retracted |= {(f.campaign, f.text) for f in lessons.earlier if f.retracted}
        own = (f for f in reversed(lessons.findings) if not f.retracted)
        found += [f.model_copy(update={"campaign": run.campaign}) for f in own]
    kept = [f for f in found if (f.campaign, f.text) not in retracted]
    return tuple(f.model_copy(update={"name": f"e{number:03d}"}) for number, f in enumerate(kept, start=1))
