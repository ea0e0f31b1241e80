"""What agents return: selection, design, draft, a campaign's findings; and the rule that picks experiments."""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kernel_scientist.records.base import Record
from kernel_scientist.records.kernel import Author, Experiment, Kernel, LlmCall, digest

OWN_IDEA = "own idea"
"""Beginning of the title of an experiment whose hypothesis the writer states."""
MAX_CHARACTERS = 1000
"""Length of one finding."""


class Selection(Record):
    """The selector's choice: names of the base and of the reference kernel."""

    base: str
    reference: str
    rationale: str
    llm_calls: tuple[LlmCall, ...] = ()


class Avenue(Record):
    """A direction to examine, less specific than an experiment."""

    title: str
    examine: str


class Design(Record):
    """The designer's result: at most ten avenues and five experiment plans."""

    avenues: tuple[Avenue, ...]
    plans: tuple[Experiment, ...]
    llm_calls: tuple[LlmCall, ...] = ()


class Designed(Record):
    """The design of one generation as a campaign records it: before any of its experiments begins."""

    generation: int
    selection: Selection
    design: Design
    """Its plans have the names of their hypotheses."""


class InFlight(NamedTuple):
    """A kernel in progress: its name, its base, the title of its experiment, and what is done with it at the moment."""

    name: str
    base: str
    title: str
    stage: str = ""
    """Such as `waiting for a writer`, `writing`, `building`, `timing`; empty if unknown."""


class DesignInProgress(NamedTuple):
    """A generation whose experiments are being designed: its number, its base, the direction of its designer."""

    generation: int
    base: str
    focus: str = ""


class ExperimentTask(Record):
    """The writer's task: the new kernel's name, its base, the reference kernel, the experiment."""

    name: str
    base: str
    reference: str
    experiment: Experiment
    in_flight: tuple[InFlight, ...] = ()
    """The other kernels in progress."""
    failed: tuple[str, ...] = ()
    """Kernels that were to implement this experiment and failed; empty for a first try."""

    @property
    def call_key(self) -> str:
        """The kernel's name and a hash of the experiment: after a killed run another experiment may get the name."""
        what = f"{self.base} {self.reference} {self.experiment.title}{f' {len(self.failed)}' if self.failed else ''}"
        return f"{self.name}-{digest(what)[:8]}"

    @property
    def own_idea(self) -> bool:
        """Whether the hypothesis is left to the writer."""
        return self.experiment.title.startswith(OWN_IDEA) and not self.experiment.rubric


class Draft(Record):
    """The result of the writer or the repairer: a kernel's source."""

    experiment: Experiment | None = None
    """The writer's own experiment, if the task left it to the writer."""

    source: str
    report: str
    critique: str = ""
    """The repairer's diagnosis."""
    llm_calls: tuple[LlmCall, ...] = ()
    unreadable: bool = False
    """No reply contained a kernel; `source` is a placeholder, not to be compiled."""
    declined: str = ""
    """Why the writer wrote no kernel; `source` is a placeholder, not to be compiled or repaired."""
    transcript: str = ""
    """What the agent's command printed, if one wrote it."""
    command: str = ""
    """That command."""

    @property
    def author(self) -> Author:
        """Return who wrote it: the command, the model that replied last, or the rule-based agent."""
        return Author(model=self.command) if self.command else Author.of(self.llm_calls)

    def noted(self, kernel: Kernel) -> Kernel:
        """Return a kernel with what its repair by this draft took, whether or not it brought a new source."""
        calls, authors = (*kernel.llm_calls, *self.llm_calls), {**kernel.authors, "repairer": self.author}
        printed = kernel.transcript + self.transcript
        return kernel.model_copy(update={"llm_calls": calls, "authors": authors, "transcript": printed})


_NO_KERNEL = 'raise SyntaxError("""'


def placeholder(key: str, reason: str) -> str:
    """Return the source of a kernel that nobody wrote: it says why there is none.

    The call's key makes each a different source: otherwise a second one would be a duplicate.
    """
    message = " ".join(f"{key}: {reason}".replace("\\", "/").replace('"', "'").split())
    return f'{_NO_KERNEL}{message[:600]}""")\n'


def missing(source: str) -> str:
    """Return why a source is only a placeholder; empty if it is a kernel."""
    if not source.startswith(_NO_KERNEL):
        return ""
    message = source.removeprefix(_NO_KERNEL).partition('"""')[0]
    return message.partition(": ")[2] or message


def own_ideas(generation: int, count: int = 5) -> Design:
    """Return plans that leave the hypothesis to the writer: one model call a kernel."""
    plans = (f"{OWN_IDEA} {generation}.{number}" for number in range(1, count + 1))
    empty = {"description": "", "rubric": (), "uplift": (0.0, 0.0), "innovation": 0}
    return Design(avenues=(), plans=tuple(Experiment.model_validate({"title": title, **empty}) for title in plans))


def pick(plans: Sequence[Experiment], count: int = 3) -> list[Experiment]:
    """Choose experiments without replacement: the most innovative, the highest maximum uplift, the highest minimum;
    further ones by maximum uplift (GPU Kernel Scientist, section 3.2)."""
    rest, chosen = list(plans), list[Experiment]()
    for number in range(min(count, len(rest))):
        merits = [{0: plan.innovation, 2: plan.uplift[0]}.get(number, plan.uplift[1]) for plan in rest]
        chosen.append(rest.pop(merits.index(max(merits))))
    return chosen


class Lesson(Record):
    """One finding: short, dated, with the kernels that support it."""

    name: str
    text: str
    kernels: tuple[str, ...]
    date: str
    runs: tuple[str, ...] = ()
    """Ids of the MLflow runs of those kernels."""
    retracted: str = ""
    """Date on which a later measurement contradicted the finding."""
    campaign: str = ""
    """The earlier campaign whose kernels it is about; empty for this campaign's own."""


class Refutation(Record):
    """A hypothesis that an earlier campaign refuted: negative knowledge."""

    statement: str
    """The title of its experiment."""
    mechanism: str = ""
    """What was to make it faster; empty if nobody said."""
    gains: tuple[str, ...]
    """What was measured, such as `-3.0 % [-4.1, -1.9] over k00003`; one per base."""
    campaign: str
    """The campaign that refuted it, whose kernels `gains` names."""


class Lessons(Record):
    """All findings of a campaign, oldest first, and those that it began with."""

    findings: tuple[Lesson, ...] = ()
    earlier: tuple[Lesson, ...] = ()
    """Findings of earlier campaigns, newest first."""
    refuted: tuple[Refutation, ...] = ()
    """What earlier campaigns refuted, newest first."""
    generation: int = 0
    """The last generation that the findings cover."""
    llm_calls: tuple[LlmCall, ...] = ()
    """The model calls of the latest summary."""

    def latest(self, count: int) -> list[Lesson]:
        """Return at most `count` valid findings, newest first: this campaign's, then those of earlier ones."""
        return [f for f in (*reversed(self.findings), *self.earlier) if not f.retracted][:count]

    def with_run_ids(self, run_ids: Mapping[str, str]) -> "Lessons":
        """Return the findings, new ones with the run ids of their kernels; `run_ids` maps kernel names to run ids."""
        findings = tuple(
            f if f.runs else f.model_copy(update={"runs": tuple(run_ids[k] for k in f.kernels if k in run_ids)})
            for f in self.findings
        )
        return self.model_copy(update={"findings": findings})

    def updated(
        self,
        new: Sequence[tuple[str, Sequence[str]]],
        retracted: Collection[str],
        llm_calls: tuple[LlmCall, ...] = (),
    ) -> "Lessons":
        """Return the findings with new ones (text, kernels) added and those named in `retracted` marked."""
        today = time.strftime("%Y-%m-%d")
        old, earlier = (
            [
                f.model_copy(update={"retracted": today}) if f.name in retracted and not f.retracted else f
                for f in findings
            ]
            for findings in (self.findings, self.earlier)
        )
        texts = {f.text for f in old}
        added = [
            Lesson(name=f"f{len(old) + i:03d}", text=text[:MAX_CHARACTERS], kernels=tuple(kernels), date=today)
            for i, (text, kernels) in enumerate([n for n in new if n[0] not in texts], start=1)
        ]
        findings = (*old, *added)
        return Lessons(findings=findings, earlier=tuple(earlier), refuted=self.refuted, llm_calls=llm_calls)
