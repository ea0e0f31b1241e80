"""The kernels of a campaign and their lineage: queries over records, no storage."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from kernel_scientist.compile.fingerprint import fingerprint
from kernel_scientist.records.evaluation import Evaluation, Trial, geomean
from kernel_scientist.records.kernel import Verdict

REFERENCE = "reference"
"""Name under which the problem's reference is timed beside kernels."""


@dataclass(frozen=True)
class Population:
    """An immutable collection of trials in the order of their names."""

    trials: tuple[Trial, ...] = ()
    _by_name: dict[str, Trial] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {t.kernel.name: t for t in self.trials})

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __len__(self) -> int:
        return len(self.trials)

    def add(self, trial: Trial) -> "Population":
        """Return the population with one more trial. Raises ValueError for a name that is taken."""
        if trial.kernel.name in self._by_name:
            raise ValueError(f"kernel {trial.kernel.name} is in the population already")
        return Population(tuple(sorted((*self.trials, trial), key=lambda t: t.kernel.name)))

    def get(self, name: str) -> Trial:
        """Return a trial by its kernel's name. Raises KeyError."""
        return self._by_name[name]

    def ranked(self) -> list[Trial]:
        """Return the kernels with a score, best first."""
        scored = [(score(t), t) for t in self.trials]
        return [t for s, t in sorted(scored, key=lambda p: (-p[0], p[1].kernel.name)) if s > 0]

    def best(self) -> Trial | None:
        """Return the incumbent: the end of the chain in which each kernel beat the one before it by a test.

        Timings are one at a time and each is made beside the incumbent of its moment, so the chain does not depend on
        the order in which kernels were logged.
        """
        right = [t for t in self.trials if score(t) > 0]
        if any(t.evaluation.by_model for t in right):
            return self.ranked()[0]  # predictions have no noise
        current = next((t for t in right if len(t.evaluation.speedups) == 1), None)
        seen: set[str] = set()
        while current is not None and current.kernel.name not in seen:
            seen.add(current.kernel.name)
            beaten = current.kernel.name
            current = next((t for t in right if beats(t, beaten)), current)
        return current

    def best_seed(self) -> Trial | None:
        """Return the fastest right seed kernel, if any."""
        return next((t for t in self.ranked() if t.kernel.base is None), None)

    def children(self, name: str) -> list[Trial]:
        """Return the trials that changed a kernel."""
        return [t for t in self.trials if t.kernel.base == name]

    def digests(self) -> frozenset[str]:
        """Return the digests of all sources tried."""
        return frozenset(t.kernel.digest for t in self.trials)

    def fingerprints(self) -> frozenset[str]:
        """Return what of all sources tried makes a difference; see `languages.fingerprint`."""
        return frozenset(fingerprint(t.kernel.source) for t in self.trials)

    def verdicts(self) -> dict[str, int]:
        """Return how many kernels came to each verdict."""
        counts = {v.value: 0 for v in Verdict}
        for trial in self.trials:
            counts[trial.evaluation.verdict.value] += 1
        return counts

    def generations(self) -> int:
        """Return the number of the next generation."""
        return max((t.kernel.generation for t in self.trials), default=-1) + 1

    def uplift(self, trial: Trial) -> float | None:
        """Return the gain over its base in percent of speed (-100 for a failure); None where there is none to know."""
        if trial.kernel.base is None or trial.kernel.base not in self._by_name:
            return None
        before, after = score(self._by_name[trial.kernel.base]), score(trial)
        if trial.evaluation.verdict is Verdict.OK and after == 0:
            return None  # right as far as is known, and not timed
        return 100 * (after / before - 1) if before > 0 else None


def score(trial: Trial) -> float:
    """Return what kernels are ranked by: measured speed relative to the reference, 0 for one without a time.

    A ratio within one run compares across the minutes and loads of a campaign, as microseconds do not. Where the target
    is a model: the predicted speed relative to the roofline.
    """
    evaluation = trial.evaluation
    if evaluation.verdict is not Verdict.OK or evaluation.held:
        return 0.0
    if evaluation.by_model:
        return roofline_fraction(evaluation) or 0.0
    speedup = evaluation.speedup_over(REFERENCE)
    return speedup.ratio if speedup else 0.0


def roofline_fraction(evaluation: Evaluation) -> float | None:
    """Return the predicted speed relative to the roofline's, over all cases; none when nothing was predicted."""
    fractions = [p.floor_us / p.time_us for p in evaluation.predictions if p.floor_us]
    return geomean(fractions) if fractions else None


def beats(trial: Trial, other: str) -> bool:
    """Whether a kernel was timed beside `other` and was faster by the test."""
    speedup = trial.evaluation.speedup_over(other)
    return trial.evaluation.verdict is Verdict.OK and speedup is not None and speedup.faster


def apart(name: str, taken: Collection[str], mark: str) -> str:
    """Return the name of a file's kernel, marked where it is taken: contestants are told apart by their names alone."""
    while name in taken:
        name = f"{name} ({mark})"
    return name


def free_names(taken: Iterable[str]) -> Iterator[str]:
    """Yield unused kernel names in order, `k00001` first; a gap that a killed run left is filled."""
    used = set(taken)
    number = 0
    while True:
        number += 1
        if (name := f"k{number:05d}") not in used:
            yield name
