"""What came of experiments, for the prompt templates: gains, earlier experiments of a lineage, a designer's record.

Related kernels that a prompt includes: STARK's context windows (arXiv 2510.16996, section 3.4). For kernel i: the
designer gets the best kernels of other lines; the writer its children and its siblings' children; the repairer its
siblings. At most five, chosen at random. The distiller gets the best, the most surprising and failed kernels.
"""

import itertools
import math
import random
from collections.abc import Iterable, Iterator
from typing import Any

from kernel_scientist.population.entry import order, score
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Experiment, Verdict

MOST_TRIED, MOST_ANCESTORS, MOST_BETS = 30, 10, 100
"""Rows of earlier experiments; those of them on the way from seed to base; latest experiments in a record of bets."""
MOST_REASON = 300
"""Characters of a reason in a table."""
MOST_RELATED = 5
LEADERS = 2
MOST_RANKED = 100
"""Ranked kernels, siblings, generations and latest kernels that are looked at, however many there are."""
BEST, SURPRISES, FAILURES = 3, 3, 2
"""Kernels of each kind for the distiller."""


def title(trial: Trial) -> str:
    """Return the title of a kernel's experiment, safe for a Markdown table."""
    return trial.kernel.title.replace("|", "/")


def bet(trial: Trial) -> Experiment | None:
    """Return the experiment whose gain somebody predicted; None for a seed and for a tuned kernel."""
    return trial.kernel.experiment if trial.kernel.tuned_from is None else None


def gain(population: Population, trial: Trial) -> str:
    """Return the gain over the base, measured or predicted; for a seed, its speed."""
    uplift, ratio = population.uplift(trial), score(trial)
    if trial.evaluation.by_model and ratio:
        share = f"predicted {100 * ratio:.3g} % of the roofline"
        return share if uplift is None else f"{uplift:+.1f} % (predicted)"
    if uplift is None:
        return f"{ratio:.3g} times the reference's speed" if ratio else "not timed"
    return f"{uplift:+.1f} %" if ratio else f"none ({trial.evaluation.verdict.value})"


def spread(population: Population, trial: Trial) -> str:
    """Return the cases with the smallest and the largest gain over the base; empty without times of both."""
    base = population.get(trial.kernel.base) if trial.kernel.base else None
    before, after = base.evaluation.times_us if base else {}, trial.evaluation.times_us
    gains = sorted((100 * (before[case] / us - 1), case) for case, us in after.items() if case in before)
    if len(gains) < 2:
        return ""
    (least, worst), (most, best) = gains[0], gains[-1]
    if most - least < 1:
        return "alike in all cases"
    return f"from {least:+.1f} % ({worst}) to {most:+.1f} % ({best})"


def outcome(population: Population, trial: Trial) -> str:
    """Return the result of a kernel in one line."""
    evaluation = trial.evaluation
    if evaluation.verdict is not Verdict.OK:
        return evaluation.verdict.because(" ".join(evaluation.reason.split())[:MOST_REASON])
    if not score(trial):
        return "correct, not timed"
    equal = "registers, instruction counts and launches are those of"
    same = f"; {equal} {trial.kernel.base}" if same_code(population, trial) else ""
    incumbent = " (the fastest so far)" if population.incumbent() == trial.kernel.name else ""
    return f"correct, {gain(population, trial)}{same}{incumbent}"


def same_code(population: Population, trial: Trial) -> bool:
    """Whether a GPU kernel's code objects and launches equal its base's in all that is recorded but the digest.

    Equal instructions may have different digests: the assembly contains line numbers.
    """
    base = population.get(trial.kernel.base) if trial.kernel.base else None
    reports = [t.evaluation.compile for t in (trial, base) if t is not None]
    if base is None or not all(report and report.objects for report in reports):
        return False
    codes = [[o.model_copy(update={"digest": ""}) for o in report.objects] for report in reports if report]
    launches = [[(x.case, x.grid, x.num_warps, x.constants) for x in report.launches] for report in reports if report]
    return codes[0] == codes[1] and launches[0] == launches[1]


def tried(population: Population, name: str, related: Iterable[Trial] = ()) -> tuple[list[dict[str, Any]], int]:
    """Return a row per experiment in a kernel's lineage and per related one, and the number of rows left out.

    The lineage's experiments are those that led to the kernel and all others on the kernel and its ancestors. If there
    are more than MOST_TRIED, those on the nearest ancestors are returned, and of one ancestor the latest.
    """
    line = list(itertools.islice(_ancestry(population, name), MOST_ANCESTORS))
    others = (child for ancestor in line for child in reversed(population.children(ancestor)))
    names = dict.fromkeys((*line, *(t.kernel.name for t in related), *others))
    experiments = [n for n in names if population.entry(n).title]
    rows = [_row(population, population.get(n)) for n in sorted(experiments[:MOST_TRIED], key=order)]
    return rows, len(experiments) - len(rows)


def _row(population: Population, trial: Trial) -> dict[str, Any]:
    experiment = bet(trial)
    return {
        "name": trial.kernel.name,
        "base": trial.kernel.base,
        "title": title(trial),
        "expected": "{:g} to {:g}".format(*experiment.uplift) if experiment else "-",
        "outcome": outcome(population, trial).replace("|", "/"),
    }


def _ancestry(population: Population, name: str) -> Iterator[str]:
    """Yield a kernel and its bases, down to the seed."""
    line: str | None = name
    while line is not None:
        yield line
        line = population.entry(line).base


def record(population: Population) -> str:
    """Return how many of the latest gains lay within the range that the designer expected, and the mean of both."""
    latest = [t for t in population.latest(MOST_BETS) if bet(t) and judged(population, t) is not None]
    bets = [(e, g) for t in latest if (e := bet(t)) and (g := judged(population, t)) is not None]
    if not bets:
        return "not known yet"
    within = sum(e.uplift[0] <= g <= e.uplift[1] for e, g in bets)
    below = sum(g < e.uplift[0] for e, g in bets)
    expected = sum(sum(e.uplift) / 2 for e, _ in bets) / len(bets)
    mean = sum(g for _, g in bets) / len(bets)
    kind = "predicted by the model" if latest[0].evaluation.by_model else "measured"
    return (
        f"{within} of {len(bets)} gains within the range, {below} below it, {len(bets) - within - below} above it; "
        f"on average you expected {expected:+.0f} %, {kind} were {mean:+.0f} %"
    )


def judged(population: Population, trial: Trial) -> float | None:
    """Return the gain over the base in percent; None if the kernel has no time."""
    if trial.evaluation.verdict is Verdict.NO_CHANGE:
        return 0.0
    return population.uplift(trial) if score(trial) else None


def surprise(population: Population, trial: Trial) -> float:
    """Return how far a gain lies outside the range that the designer expected, as a log ratio of speeds; else 0."""
    experiment, uplift = bet(trial), judged(population, trial)
    if experiment is None or uplift is None:
        return 0.0
    low, high = (math.log(max(1 + percent / 100, 1e-6)) for percent in experiment.uplift)
    found = math.log(max(1 + uplift / 100, 1e-6))
    return max(low - found, found - high, 0.0)


def for_design(population: Population, name: str) -> list[Trial]:
    """Return the fastest kernels that do not descend from a kernel; its descendants are part of `outcomes.tried`."""
    others = (e.name for e in population.ranking(MOST_RANKED) if not descends(population, e.name, name))
    return [population.get(other) for other in itertools.islice(others, LEADERS)]


def for_writing(population: Population, name: str, rng: random.Random) -> list[Trial]:
    """Return the related kernels for writing a child of a kernel."""
    cousins = [c for s in siblings(population, name)[-MOST_RANKED:] for c in population.children(s)]
    return _sampled(population, [*population.children(name), *cousins], name, rng)


def for_repair(population: Population, base: str, rng: random.Random) -> list[Trial]:
    """Return the related kernels for repairing a child of `base`: its siblings."""
    return _sampled(population, population.children(base), base, rng)


def for_distilling(population: Population, rng: random.Random) -> list[Trial]:
    """Return the fastest kernels that an experiment made, those that surprised most, and a sample of failures."""
    best = [e.name for e in population.ranking(MOST_RANKED) if e.title][:BEST]
    latest = [(surprise(population, t), t.kernel.name) for t in population.latest(MOST_RANKED)]
    surprises = [name for miss, name in sorted(latest, reverse=True) if miss and name not in best][:SURPRISES]
    failures = population.failures(MOST_RANKED)
    failed = rng.sample(failures, min(FAILURES, len(failures)))
    names = {*best, *surprises, *failed} or {e.name for e in population.ranking(BEST)}
    return [population.get(name) for name in sorted(names, key=order)]


def siblings(population: Population, name: str) -> list[str]:
    """Return the names of the other kernels with the same base; none for a seed."""
    parent = population.entry(name).base
    return [n for n in population.children(parent) if n != name] if parent else []


def descends(population: Population, name: str, ancestor: str) -> bool:
    """Whether a kernel is `ancestor` or descends from it, within MOST_RANKED generations."""
    return ancestor in itertools.islice(_ancestry(population, name), MOST_RANKED + 1)


def _sampled(population: Population, names: Iterable[str], excluded: str, rng: random.Random) -> list[Trial]:
    distinct = [name for name in dict.fromkeys(names) if name != excluded]
    chosen = distinct if len(distinct) <= MOST_RELATED else rng.sample(distinct, MOST_RELATED)
    return [population.get(name) for name in sorted(chosen, key=order)]
