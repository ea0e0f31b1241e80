"""What is worth trying next: the hypotheses that nobody tried, or whose implementation failed, by their expected gain.

Selection of experiments of strategy `hypotheses`. It is a pure function of the hypotheses and the population.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from kernel_scientist.population.lineage import Population
from kernel_scientist.records.kernel import Experiment
from kernel_scientist.records.params import Params
from kernel_scientist.search.hypotheses import Hypothesis, HypothesisState

ATTEMPTS = 3
"""Kernels of one hypothesis that may fail, after which it is not tried again."""
PRIOR = 0.5
"""Probability of a gain if the designer states none, and of an implementation that is right after one that failed."""


class Candidate(NamedTuple):
    """An experiment that may be next."""

    hypothesis: Hypothesis
    base: str
    """The kernel to start from: that of the design, or the incumbent after a failure."""
    worth: float
    """Expected gain in percent of speed, per unit of effort."""


def expected_gain(uplift: tuple[float, float]) -> float:
    """Return the mean gain over a predicted range, in percent. A loss counts as no gain: nobody keeps that kernel."""
    low, high = uplift
    if high <= 0:
        return 0.0
    return (low + high) / 2 if low >= 0 else high * high / (2 * (high - low))


def shares(hypotheses: Iterable[Hypothesis]) -> Mapping[str, float]:
    """Return how often each mechanism held so far; one that was never decided is not in it.

    One success is added, so that a mechanism that failed once is not given up: after n refutations alone it is 1/(n+1).
    """
    decided, supported = Counter[str](), Counter[str]()
    for one in hypotheses:
        if one.is_decided:
            decided[one.mechanism] += 1
            supported[one.mechanism] += one.state is HypothesisState.SUPPORTED
    return {mechanism: (supported[mechanism] + 1) / (count + 1) for mechanism, count in decided.items()}


def least_gain(params: Params) -> float:
    """Return the gain in percent that is too small to be measured on the target."""
    return 100 * (params.kernelbot.margin if params.target == "kernelbot" else params.harness.margin)


def promises(plan: Experiment, least: float) -> bool:
    """Whether a plan may gain more than `least` percent, which is too small to be measured."""
    return plan.probability != 0 and expected_gain(plan.uplift) > least


def worth(hypothesis: Hypothesis, share: float = 1.0) -> float:
    """Return the expected gain in percent of speed per unit of effort: probability x gain / effort.

    The probability is the designer's, times the `share` of cases in which its mechanism held, halved for each
    implementation that failed. A machine's failure is none.
    """
    plan = hypothesis.experiment
    stated = PRIOR if plan.probability is None else plan.probability
    return stated * share * PRIOR ** len(hypothesis.judged) * expected_gain(plan.uplift) / plan.effort


def candidates(
    hypotheses: Sequence[Hypothesis],
    population: Population,
    busy: Collection[str] = (),
    repeats: bool = True,
    least: float = 0.0,
) -> list[Candidate]:
    """Return what may be tried next, by worth, the best first; those of a mechanism that stands above come last.

    `busy`: names of hypotheses that somebody works on. `repeats`: whether a blocked one may be tried again, on the
    incumbent. `least`: gain that is too small to be measured, in percent. One that a machine's failure ended is tried
    again, until that was so ATTEMPTS times.
    """
    incumbent, held, found = population.incumbent(), shares(hypotheses), list[Candidate]()
    for one in hypotheses:
        again = repeats and one.state is HypothesisState.BLOCKED and len(one.judged) < ATTEMPTS
        unlucky = len(one.tests) - len(one.judged) >= ATTEMPTS
        if one.name in busy or unlucky or not (one.is_untried or again) or not promises(one.experiment, least):
            continue
        base = incumbent if again and incumbent else one.base
        found.append(Candidate(one, base, worth(one, held.get(one.mechanism, 1.0))))
    found.sort(key=lambda candidate: -candidate.worth)
    seen, first, rest = set[str](), list[Candidate](), list[Candidate]()
    for candidate in found:
        (rest if candidate.hypothesis.mechanism in seen else first).append(candidate)
        seen.add(candidate.hypothesis.mechanism)
    return first + rest


def mechanisms(found: Iterable[Candidate]) -> int:
    """Return the number of different mechanisms among candidates."""
    return len({candidate.hypothesis.mechanism for candidate in found})
