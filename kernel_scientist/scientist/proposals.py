"""The agents' proposals: selection, design, experiment task, draft; and the rule that picks experiments."""

from collections.abc import Callable, Sequence

from kernel_scientist.records.base import Record
from kernel_scientist.records.kernel import Experiment, LlmCall, digest

OWN_IDEA = "own idea"
"""Beginning of the title of an experiment whose hypothesis the writer states."""


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


class ExperimentTask(Record):
    """The writer's task: the new kernel's name, its base, the reference kernel, the experiment."""

    name: str
    base: str
    reference: str
    experiment: Experiment

    @property
    def call_key(self) -> str:
        """The kernel's name and a hash of the experiment: after a killed run another experiment may get the name."""
        return f"{self.name}-{digest(f'{self.base} {self.reference} {self.experiment.title}')[:8]}"

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
    """No reply contained a kernel; `source` is a placeholder that does not compile."""


def own_ideas(generation: int, count: int = 5) -> Design:
    """Return plans that leave the hypothesis to the writer: one model call a kernel."""
    plans = (f"{OWN_IDEA} {generation}.{number}" for number in range(1, count + 1))
    empty = {"description": "", "rubric": (), "uplift": (0.0, 0.0), "innovation": 0}
    return Design(avenues=(), plans=tuple(Experiment.model_validate({"title": title, **empty}) for title in plans))


def pick(plans: Sequence[Experiment], count: int = 3) -> list[Experiment]:
    """Choose experiments without replacement: the most innovative, the highest maximum uplift, the highest minimum;
    further ones by maximum uplift (GPU Kernel Scientist, section 3.2)."""
    rest, chosen = list(plans), list[Experiment]()
    rules: tuple[Callable[[Experiment], float], ...] = (_innovation, _max_uplift, _min_uplift)
    for number in range(min(count, len(rest))):
        best = max(rest, key=rules[number] if number < len(rules) else _max_uplift)
        chosen.append(best)
        rest.remove(best)
    return chosen


def _innovation(plan: Experiment) -> float:
    return plan.innovation


def _max_uplift(plan: Experiment) -> float:
    return plan.uplift[1]


def _min_uplift(plan: Experiment) -> float:
    return plan.uplift[0]
