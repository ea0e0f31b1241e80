"""The agents' protocol, one method per role; `llm.agent` and `playbook.agent` implement it."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kernel_scientist.hardware import cpu, measured
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.measured import MeasuredPeaks
from kernel_scientist.hardware.peaks import Machine, roofline_limit, this_cpu
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.problem import Problem, Profile
from kernel_scientist.problems.published import PublishedTime
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Language
from kernel_scientist.scientist.knowledge import Document, applicable
from kernel_scientist.scientist.proposals import (
    Design,
    DesignInProgress,
    Draft,
    ExperimentTask,
    InFlight,
    Lessons,
    Selection,
)
from kernel_scientist.scientist.symptoms import SymptomCard

FOCUSES = (
    "data movement and locality",
    "decomposition and parallelism",
    "number formats and the choice of instructions",
    "latency hiding and pipelining",
    "launch, overhead and scheduling",
)
"""Directions of designers that work at the same time, so that they do not plan the same experiments."""


@dataclass(frozen=True)
class CpuInfo:
    """A CPU: cache sizes in bytes by level (`L1`, `L2`), instruction sets, vector width, cores."""

    caches: dict[str, int]
    features: frozenset[str]
    vector_bytes: int
    cores: int
    model: str = "this CPU"
    generation: str = ""
    """Such as `Emerald Rapids`; empty if it is not known."""
    clock: str = ""
    """What the system says of the clock; empty if nothing."""
    physical: int = 0
    """Cores on which the `cores` logical CPUs lie; 0: as many."""
    shared: frozenset[str] = frozenset()
    """Levels of cache of which one serves several cores."""
    measured: MeasuredPeaks | None = None
    """What microkernels reached on it; None if that was not measured."""

    @staticmethod
    def of_this_machine() -> "CpuInfo":
        """Return the description of this machine's CPU."""
        named = cpu.model(), cpu.generation(), cpu.clock()
        shared = cpu.physical_cores(), cpu.shared_caches()
        known = cpu.caches(), cpu.features(), cpu.vector_bytes(), cpu.cores()
        return CpuInfo(*known, *named, *shared, measured.kept())


@dataclass(frozen=True)
class Assignment:
    """An agent's assignment: problem, language, target and background, the same for a whole campaign."""

    problem: Problem
    profile: Profile
    language: Language
    target: str
    cpu: CpuInfo
    peaks: Machine = field(default_factory=this_cpu)
    """Infinite rates for a GPU that is in no table: it has no roofline floor."""
    gpu: Gpu | None = None
    """The GPU that times or predicts kernels; None for a CPU, or a GPU without an entry in the tables."""
    knowledge: tuple[Document, ...] = ()
    knowledge_tokens: int = 0
    symptoms: Mapping[str, SymptomCard] = field(default_factory=dict[str, SymptomCard])
    """Cards of symptoms, by name."""
    most_findings: int = 0
    confidence: float = 0.95
    """Of the intervals of measured ratios."""
    published: Mapping[str, PublishedTime] = field(default_factory=dict[str, PublishedTime])
    """The best time that somebody published for a case on the target's GPU, by name of the case."""
    by_model: bool = False
    """Whether a model predicts the times."""
    compiler: str = ""
    """What compiles kernels for the GPU, with its version; empty if that is not known here."""
    operators: Mapping[str, float] = field(default_factory=dict[str, float])
    """Shares of the reference's operators in its time, if it is the only kernel to start from; else empty."""
    bound_by_memory: bool | None = None
    """Whether memory sets the roofline of every timed case; None: as the problem's work says."""

    @property
    def backend(self) -> str:
        """`cpu`, `rocm` or `cuda`: where kernels run, or would run if the modelled GPU were here."""
        if self.gpu is None:
            return self.target
        return "rocm" if self.gpu.arch.startswith("gfx") else "cuda"

    @property
    def memory_bound(self) -> bool:
        """Whether memory sets the roofline of every timed case; no if the peaks are unknown."""
        if self.bound_by_memory is not None:
            return self.bound_by_memory
        works = [self.problem.work(case) for case in self.profile.benchmarks]
        return math.isfinite(self.peaks.memory_gbps) and all(
            roofline_limit(work, self.peaks) == "memory" for work in works
        )

    @property
    def subject(self) -> tuple[str, str, bool, str]:
        """Return what decides which documents apply: language, backend, whether memory sets the roofline, the problem's
        text."""
        about = f"{self.problem.name} {self.problem.description} {self.problem.reference_text}"
        return self.language, self.backend, self.memory_bound, about

    @property
    def documents(self) -> list[Document]:
        """Return the background documents that apply."""
        return applicable(self.knowledge, *self.subject)


@dataclass(frozen=True)
class Step:
    """One step of a generation: the generation's number, a random generator for the step, what others do meanwhile."""

    generation: int
    rng: random.Random
    in_flight: tuple[InFlight, ...] = ()
    """Kernels in progress."""
    designing: tuple[DesignInProgress, ...] = ()
    """The other generations that are being designed."""
    focus: str = ""
    """The direction that this designer looks at first, one of FOCUSES; empty: all."""
    planned: tuple[str, ...] = ()
    """Plans of earlier designs that may still be carried out, each with its base."""

    @staticmethod
    def of(
        seed: int | str,
        purpose: str,
        generation: int,
        in_flight: tuple[InFlight, ...] = (),
        designing: tuple[DesignInProgress, ...] = (),
        focus: str = "",
    ) -> "Step":
        """Return the step for a purpose. The random numbers depend only on the first three arguments, so a resumed
        campaign continues as it would have."""
        return Step(generation, random.Random(f"{seed}/{purpose}/{generation}"), in_flight, designing, focus)


class Agent(Protocol):
    """Fills the roles of the Scientist. Calls may block on a model; none uses the device."""

    def select(self, population: Population, lessons: Lessons, step: Step) -> Selection:
        """Choose the kernel to change (base) and the one to contrast it with (reference)."""
        ...

    def design(self, population: Population, selection: Selection, lessons: Lessons, step: Step) -> Design:
        """List avenues and experiment plans for the base."""
        ...

    def write(self, population: Population, task: ExperimentTask, lessons: Lessons) -> Draft:
        """Implement an experiment as a change of the base."""
        ...

    def repair(self, population: Population, task: ExperimentTask, failed: Trial, lessons: Lessons) -> Draft | None:
        """Repair a kernel that failed; None if this agent does not repair."""
        ...

    def summarise(self, population: Population, lessons: Lessons, step: Step) -> Lessons:
        """Return the findings so far with new ones added and contradicted ones retracted."""
        ...
