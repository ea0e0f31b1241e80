"""Plans of designs, and kernels that tried them, for tests."""

from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Experiment, Verdict
from kernel_scientist.scientist.proposals import Design, Designed, Selection
from tests.trials import trial

Interval = tuple[float, float]


def plan(name: str = "h1.1", title: str = "wider", uplift: Interval = (10, 20), **changes: object) -> Experiment:
    values = {"title": title, "description": "", "rubric": ("do",), "uplift": uplift, "innovation": 1}
    return Experiment.model_validate({**values, "hypothesis": name, **changes})


def design(*plans: Experiment, base: str = "k00001", generation: int = 1) -> Designed:
    selection = Selection(base=base, reference=base, rationale="")
    return Designed(generation=generation, selection=selection, design=Design(avenues=(), plans=plans))


def measured(name: str, by: Experiment, interval: Interval | None, base: str = "k00001", ratio: float = 1.0) -> Trial:
    """A correct kernel with a gain over its base; None: it was not timed beside it."""
    made = trial(name, ratio, {base: interval} if interval else None, base)
    return made.model_copy(update={"kernel": made.kernel.model_copy(update={"experiment": by, "generation": 1})})


def failed(name: str, by: Experiment, verdict: Verdict = Verdict.INCORRECT, base: str = "k00001") -> Trial:
    kernel = measured(name, by, None, base).kernel
    return Trial(kernel=kernel, evaluation=Evaluation(verdict=verdict, reason="it failed"))
