"""The kernels of a campaign and their lineage: an index over records, without storage."""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from kernel_scientist.compile.fingerprint import fingerprint
from kernel_scientist.records.evaluation import Evaluation, Trial, geomean
from kernel_scientist.records.kernel import REFERENCE, Verdict


@dataclass(frozen=True)
class Population:
    """An immutable collection of trials in the order of their names."""

    trials: tuple[Trial, ...] = ()

    @cached_property
    def _by_name(self) -> dict[str, Trial]:
        return {t.kernel.name: t for t in self.trials}

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __len__(self) -> int:
        return len(self.trials)

    def add(self, trial: Trial) -> "Population":
        """Return the population with one more trial. Raises ValueError when the kernel's name exists already."""
        if trial.kernel.name in self._by_name:
            raise ValueError(f"kernel {trial.kernel.name} is in the population already")
        return Population(tuple(sorted((*self.trials, trial), key=lambda t: t.kernel.name)))

    def get(self, name: str) -> Trial:
        """Return a trial by its kernel's name. Raises KeyError."""
        return self._by_name[name]

    def ranked(self) -> list[Trial]:
        """Return the trials with a score, best first."""
        return sorted((t for t in self.trials if score(t) > 0), key=lambda t: (-score(t), t.kernel.name))

    def best(self) -> Trial | None:
        """Return the incumbent: the end of the chain in which each kernel was faster than the previous one by a test.

        Timings run one at a time and each includes the incumbent of that moment, so the chain does not depend on the
        order in which kernels were logged. On a model target: the kernel that is predicted to be fastest.
        """
        scored = [t for t in self.trials if score(t) > 0]
        if any(t.evaluation.by_model for t in scored):
            return self.ranked()[0]  # predictions have no noise
        current = next((t for t in scored if len(t.evaluation.speedups) == 1), None)
        visited: set[str] = set()
        while current is not None and current.kernel.name not in visited:
            visited.add(current.kernel.name)
            name = current.kernel.name
            current = next((t for t in scored if beats(t, name)), current)
        return current

    def incumbent_scores(self) -> tuple[float, ...]:
        """Return the incumbent's score after each kernel, 0 while no kernel is correct.

        The incumbent changes only by a test, so a lucky timing does not raise the curve.
        """
        incumbents = (Population(self.trials[:count]).best() for count in range(1, len(self) + 1))
        return tuple(score(incumbent) if incumbent else 0.0 for incumbent in incumbents)

    def best_seed(self) -> Trial | None:
        """Return the fastest correct seed kernel, if any."""
        return next((t for t in self.ranked() if t.kernel.base is None), None)

    def children(self, name: str) -> list[Trial]:
        """Return the trials whose base is the kernel `name`."""
        return [t for t in self.trials if t.kernel.base == name]

    def digests(self) -> frozenset[str]:
        """Return the digests of all sources tried."""
        return frozenset(t.kernel.digest for t in self.trials)

    def fingerprints(self) -> frozenset[str]:
        """Return the fingerprints of all sources tried; see `compile.fingerprint`."""
        return frozenset(fingerprint(t.kernel.source) for t in self.trials)

    def verdicts(self) -> dict[str, int]:
        """Return the number of kernels per verdict."""
        counts = Counter(t.evaluation.verdict for t in self.trials)
        return {verdict.value: counts[verdict] for verdict in Verdict}

    def generations(self) -> int:
        """Return the number of the next generation."""
        return max((t.kernel.generation for t in self.trials), default=-1) + 1

    def uplift(self, trial: Trial) -> float | None:
        """Return the change of the score over the base's in percent, -100 for a failure; None if either is unknown."""
        base = self._by_name.get(trial.kernel.base or "")
        if base is None or not score(base):
            return None
        if trial.evaluation.verdict is Verdict.OK and not score(trial):
            return None  # correct, but not timed
        return 100 * (score(trial) / score(base) - 1)


def score(trial: Trial) -> float:
    """Return the number that ranks kernels: the speedup over the reference in the kernel's own run, 0 without a time.

    The ratio is used because times of different runs are not comparable: clocks and load change. On a model target
    the score is the predicted share of the roofline's speed.
    """
    evaluation = trial.evaluation
    if evaluation.verdict is not Verdict.OK or evaluation.skipped:
        return 0.0
    if evaluation.by_model:
        return roofline_fraction(evaluation) or 0.0
    speedup = evaluation.speedup_over(REFERENCE)
    return speedup.ratio if speedup else 0.0


def roofline_fraction(evaluation: Evaluation) -> float | None:
    """Return the predicted share of the roofline's speed (geometric mean over the cases); None without predictions."""
    fractions = [p.floor_us / p.time_us for p in evaluation.predictions if p.floor_us]
    return geomean(fractions) if fractions else None


def beats(trial: Trial, other: str) -> bool:
    """Whether a kernel was timed against `other` and the test found it faster."""
    speedup = trial.evaluation.speedup_over(other)
    return trial.evaluation.verdict is Verdict.OK and speedup is not None and speedup.faster


def distinct_name(name: str, taken: Collection[str], mark: str) -> str:
    """Return `name`, with `mark` appended while it is taken: timed sources are identified by their names."""
    while name in taken:
        name = f"{name} ({mark})"
    return name


def free_names(taken: Iterable[str]) -> Iterator[str]:
    """Yield unused kernel names in order from `k00001`, including those that a killed run left unused."""
    used = set(taken)
    return (name for number in itertools.count(1) if (name := f"k{number:05d}") not in used)
