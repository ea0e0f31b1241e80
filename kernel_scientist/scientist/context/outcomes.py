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

from kernel_scientist.population.entry import order, over_base, score
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import factors
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE, Experiment, Verdict

MOST_TRIED, MOST_ANCESTORS, MOST_BETS = 30, 10, 100
"""Rows of earlier experiments; those of them on the way from seed to base; latest experiments in a record of bets."""
MOST_REASON = 300
"""Characters of a reason in a table."""
SLOWER, MOST_SLOWER = 0.995, 5
"""Ratio below which a case is named as slower, and most of these cases."""
MOST_RELATED = 5
LEADERS = 2
MOST_RANKED = 100
"""Ranked kernels, siblings, generations and latest kernels that are looked at, however many there are."""
BEST, SURPRISES, FAILURES = 3, 3, 2
"""Kernels of each kind for the distiller."""
RECENT_TIMINGS = 20
"""Latest kernels whose conditions are stated."""


def title(trial: Trial) -> str:
    """Return the title of a kernel's experiment, safe for a Markdown table."""
    return trial.kernel.title.replace("|", "/")


def bet(trial: Trial) -> Experiment | None:
    """Return the experiment whose gain somebody predicted; None for a seed and for a tuned kernel."""
    return trial.kernel.experiment if trial.kernel.tuned_from is None else None


NOT_PAIRED = "not measured against its base"
"""What is said of a gain if kernel and base were not timed in one run."""


def gain(population: Population, trial: Trial) -> str:
    """Return the gain over the base, measured in one run or predicted; for a seed, its speed."""
    own = trial.evaluation.speedup_over(REFERENCE)
    if trial.evaluation.by_model and score(trial):
        ratio = population.predicted_gain(trial)
        share = f"predicted {100 * score(trial):.3g} % of the roofline"
        return share if ratio is None else f"{100 * (ratio - 1):+.1f} % (predicted)"
    if trial.evaluation.verdict is not Verdict.OK:
        return f"none ({trial.evaluation.verdict.value})"
    if own is None:
        return "not timed"
    if trial.kernel.base is None:
        return f"{own} the speed of the PyTorch reference"
    pair = over_base(trial)
    if pair is None:
        return f"{NOT_PAIRED}, {own} the speed of the PyTorch reference"
    where = " (by separate submissions)" if "compared" in trial.evaluation.environment else ""
    return f"{factors.percent(pair.ratio, pair.interval, pair.dropped)} over {pair.against}{where}"


def spread(population: Population, trial: Trial) -> str:
    """Return the cases with the smallest and the largest gain over the base, of those that are resolved.

    Measured ones are of the run that timed both. Empty if there are fewer than two.
    """
    gains = sorted(_case_gains(population, trial))
    if len(gains) < 2:
        return ""
    (least, worst, least_text), (most, best, most_text) = gains[0], gains[-1]
    if most - least < 0.01:
        return "alike in all cases"
    slower = [f"{text} ({case})" for ratio, case, text in gains[1:] if ratio < SLOWER <= most][:MOST_SLOWER]
    also = f"; slower also {', '.join(slower)}" if slower else ""
    return f"from {least_text} ({worst}) to {most_text} ({best}){also}"


def _case_gains(population: Population, trial: Trial) -> Iterator[tuple[float, str, str]]:
    """Yield ratio, case and text of the gains over the base by case."""
    if not trial.evaluation.by_model:
        pair = over_base(trial)
        for case, times in (pair.cases if pair else {}).items():
            if factors.is_resolved(times.interval):
                yield times.ratio, case, factors.percent(times.ratio, times.interval)
        return
    base = population.get(trial.kernel.base) if trial.kernel.base else None
    before = base.evaluation.times_us if base else {}
    for case, us in trial.evaluation.times_us.items():
        if case in before:
            yield before[case] / us, case, f"{100 * (before[case] / us - 1):+.1f} %"


def outcome(population: Population, trial: Trial) -> str:
    """Return the result of a kernel in one line."""
    evaluation = trial.evaluation
    if evaluation.verdict is Verdict.ABSENT:
        return " ".join(evaluation.reason.split())[:MOST_REASON]
    if evaluation.verdict is not Verdict.OK:
        return evaluation.verdict.because(" ".join(evaluation.reason.split())[:MOST_REASON])
    if not score(trial):
        return "correct, not timed"
    equal = "registers, instruction counts and launches are those of"
    same = f"; {equal} {trial.kernel.base}" if same_code(population, trial) else ""
    incumbent = f"; {_leads(trial)}" if population.incumbent() == trial.kernel.name else ""
    return f"correct, {gain(population, trial)}{same}{incumbent}"


def _leads(incumbent: Trial) -> str:
    """Return why the incumbent counts as the fastest so far, without what its gain says."""
    if incumbent.evaluation.by_model:
        return "the fastest so far"
    test = incumbent.evaluation.test
    if test is not None and test.against == incumbent.kernel.base:
        return "by this test it became the incumbent"
    return fastest(incumbent)


def fastest(incumbent: Trial) -> str:
    """Return why the incumbent counts as the fastest so far: by which test, or by prediction."""
    if incumbent.evaluation.by_model:
        return "predicted to be the fastest so far"
    test = incumbent.evaluation.test
    if test is None or test.against == REFERENCE:
        return "the incumbent: it was timed first, and no test found another kernel faster"
    return f"the incumbent: a test found it faster than {test.against}, the incumbent before it: {test} in one run"


def conditions(population: Population) -> str:
    """Return a sentence if many of the latest timings were made on a busy machine; else empty."""
    found = [t.evaluation.busy for t in population.latest(RECENT_TIMINGS) if t.evaluation.timings]
    busy = [words for words in found if words]
    if 2 * len(busy) < len(found) or not busy:
        return ""
    share = f"{len(busy)} of the latest {len(found)} timings were made on a busy machine"
    return f"{share}, so intervals are wide. The last of them was {busy[-1]}."


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
    return codes[0] == codes[1] and launches[0] == launches[1] != []


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
    """Return how many of the latest gains lay within the range that the designer expected, and the mean of both.

    A measured gain is below or above a range if its whole interval is. The mean is stated if its interval supports it.
    """
    latest = [t for t in population.latest(MOST_BETS) if bet(t) and (score(t) or is_unchanged(t))]
    bets = [(e, g) for t in latest if (e := bet(t)) and (g := known_gain(population, t)) is not None]
    unknown = len(latest) - len(bets)
    missing = f"; {unknown} more {NOT_PAIRED} or not resolved" if unknown else ""
    if not bets:
        return f"not known yet{missing}"
    below = sum(100 * (high - 1) < e.uplift[0] for e, (_, (_, high)) in bets)
    above = sum(100 * (low - 1) > e.uplift[1] for e, (_, (low, _)) in bets)
    expected = sum(sum(e.uplift) / 2 for e, _ in bets) / len(bets)
    ratio, interval = factors.mean([g for _, g in bets])
    by_model = latest[0].evaluation.by_model
    found = f"{100 * (ratio - 1):+.0f} %" if by_model else factors.percent(ratio, interval)
    kind = "predicted by the model" if by_model else "measured"
    return (
        f"{len(bets) - below - above} of {len(bets)} gains within the range, {below} below it, {above} above it; "
        f"on average you expected {expected:+.0f} %, {kind}: {found}{missing}"
    )


def known_gain(population: Population, trial: Trial) -> tuple[float, factors.Interval] | None:
    """Return the gain over the base as a factor with its interval, measured or predicted; None if it is not known.

    Code that is its base's gains nothing. A prediction's interval is a point.
    """
    if is_unchanged(trial):
        return 1.0, (1.0, 1.0)
    if trial.evaluation.by_model:
        ratio = population.predicted_gain(trial)
        return (ratio, (ratio, ratio)) if ratio else None
    pair = over_base(trial)
    return (pair.ratio, pair.interval) if pair and pair.resolved else None


def is_unchanged(trial: Trial) -> bool:
    """Whether a kernel compiled to its base's machine code."""
    return trial.evaluation.verdict is Verdict.NO_CHANGE


def surprise(population: Population, trial: Trial) -> float:
    """Return how far a gain certainly lies outside the range that the designer expected, as a log ratio; else 0."""
    experiment, gain = bet(trial), known_gain(population, trial)
    if experiment is None or gain is None:
        return 0.0
    low, high = (math.log(max(1 + percent / 100, 1e-6)) for percent in experiment.uplift)
    least, most = (math.log(max(bound, 1e-6)) for bound in gain[1])
    return max(low - most, least - high, 0.0)


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


def with_bases(population: Population, trials: Iterable[Trial]) -> list[Trial]:
    """Return kernels and their bases, each once, in the order of their numbers."""
    names = {name for trial in trials for name in (trial.kernel.name, trial.kernel.base) if name}
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
