"""What a population knows of a kernel without reading its whole record."""

import math
from typing import NamedTuple

from kernel_scientist.compilers.fingerprint import fingerprint
from kernel_scientist.records.evaluation import Evaluation, Speedup, Trial, geomean
from kernel_scientist.records.factors import UNRESOLVED
from kernel_scientist.records.kernel import REFERENCE, Author, Verdict

LEAST_VARIANCE = 1e-12
"""Variance of a ratio whose interval has no width."""


class Pair(NamedTuple):
    """How many times faster a kernel was than another in one run, as a binary logarithm."""

    against: str
    log: float
    variance: float
    """Square of the half-width of the interval."""

    @staticmethod
    def of(speedup: Speedup, against: str) -> "Pair":
        """Return the pair of a comparison. With too few blocks for an interval the variance is very large."""
        low, high = max(speedup.interval[0], UNRESOLVED[0]), min(speedup.interval[1], UNRESOLVED[1])
        return Pair(against, math.log2(speedup.ratio), max((math.log2(high / low) / 2) ** 2, LEAST_VARIANCE))


class Entry(NamedTuple):
    """One kernel in the index of a population: small, so that a hundred thousand fit into memory."""

    name: str
    base: str | None
    generation: int
    title: str
    """Title of the experiment; empty for a seed."""
    verdict: Verdict
    score: float
    """Speedup over the reference in its own run, or the predicted share of the roofline's speed; 0 without a time.
    Measured ones are not comparable: kernels are ordered by `Population.estimate`."""
    by_model: bool
    rival: str
    """What the test compared it with: the incumbent of that moment, or the reference; empty without a time."""
    pairs: tuple[Pair, ...]
    """Its ratios to the reference, `rival` and base, of one run; none without a time."""
    is_faster: bool
    """Whether the test found it faster than `rival`."""
    is_slower: bool
    """Whether the test found it slower than `rival`: its whole interval lies below 1."""
    gain: float | None
    """How many times faster it was than its base, in one run; None if that was not measured or is not resolved."""
    gain_low: float | None
    gain_high: float | None
    """Interval of that ratio, whether or not it is resolved; None without a pair or an interval."""
    hypothesis: str
    """The hypothesis that it tests (`Experiment.hypothesis`); empty for none, and in older records."""
    skipped: bool
    tuned_from: str | None
    tuning_s: float
    """Time that its tuning took, in seconds."""
    digest: str
    fingerprint: str
    writer: str
    """Model of the writer; `playbook` for the rule-based agent and for seeds."""
    usd: float
    """Cost of its model calls."""
    cell: tuple[str, ...]
    """Cell of the archive of strategy `islands`; see `cell`."""
    root: str
    """The seed, or the standing champion, that it descends from."""
    is_seed: bool
    """Whether people wrote it."""

    @staticmethod
    def of(trial: Trial, root: str | None = None) -> "Entry":
        """Return the entry of a kernel. `root`: the root of its base; None: the kernel itself."""
        kernel, evaluation = trial.kernel, trial.evaluation
        test, pair = evaluation.test, over_base(trial)
        return Entry(
            name=kernel.name,
            base=kernel.base,
            generation=kernel.generation,
            title=kernel.experiment.title if kernel.experiment else "",
            verdict=evaluation.verdict,
            score=score(trial),
            by_model=evaluation.by_model,
            rival=test.against if test else "",
            pairs=_pairs(trial, test.against) if test else (),
            is_faster=test is not None and test.against != REFERENCE and test.faster,
            is_slower=test is not None and test.interval[1] < 1,
            gain=pair.ratio if pair and pair.resolved else None,
            gain_low=pair.interval[0] if pair and pair.known else None,
            gain_high=pair.interval[1] if pair and pair.known else None,
            hypothesis=kernel.experiment.hypothesis if kernel.experiment else "",
            skipped=evaluation.skipped,
            tuned_from=kernel.tuned_from,
            tuning_s=sum(t.seconds for t in kernel.tries),
            digest=kernel.digest,
            fingerprint=fingerprint(kernel.source),
            writer=kernel.authors.get("writer", Author.of(())).model,
            usd=sum(call.usd for call in kernel.llm_calls),
            cell=cell(evaluation),
            root=root or kernel.name,
            is_seed=kernel.is_seed,
        )

    @property
    def is_relative(self) -> bool:
        """Whether its place follows from those of other kernels: it was timed beside one."""
        return not self.by_model and self.rival not in ("", REFERENCE)

    def over(self, against: str) -> Pair | None:
        """Return the ratio to the reference, rival or base, if it was measured."""
        return next((pair for pair in self.pairs if pair.against == against), None)

    @property
    def is_experiment(self) -> bool:
        """Whether it carries out a designed experiment: neither a seed nor a tuned kernel."""
        return bool(self.title) and self.tuned_from is None


def order(name: str) -> tuple[int, str]:
    """Return the key that sorts kernel names by their number, also beyond k99999."""
    return len(name), name


def over_base(trial: Trial) -> Speedup | None:
    """Return the comparison of a kernel with its base: of one run. None if they were not timed in one."""
    return trial.evaluation.speedup_over(trial.kernel.base) if trial.kernel.base else None


def _pairs(trial: Trial, rival: str) -> tuple[Pair, ...]:
    evaluation = trial.evaluation
    names = dict.fromkeys((REFERENCE, rival, trial.kernel.base))
    found = ((name, evaluation.speedup_over(name)) for name in names)
    return tuple(Pair.of(speedup, name) for name, speedup in found if name and speedup)


def score(trial: Trial) -> float:
    """Return the speedup over the reference in the kernel's own run, 0 without a time: see `Entry.score`."""
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


def cell(evaluation: Evaluation) -> tuple[str, ...]:
    """Return a kernel's cell, computed from its code: widest vectors, kind of arithmetic, size as a power of two."""
    report = evaluation.compile
    counts = report.instructions if report else {}
    widest = next((kind for kind in ("zmm", "ymm", "xmm") if counts.get(kind)), "scalar")
    size = (report.code_bytes or 0).bit_length() if report else 0
    return widest, "dot" if counts.get("dot") else "fma" if counts.get("fma") else "plain", f"2^{size} bytes"
