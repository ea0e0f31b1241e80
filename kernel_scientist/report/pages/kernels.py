"""The family tree of a campaign's kernels for its page: every kernel as a line, the important ones in full."""

import difflib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernel_scientist.population.entry import order, over_base
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import source_line
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.factors import factor, percent
from kernel_scientist.records.kernel import REFERENCE, Verdict
from kernel_scientist.report import tables
from kernel_scientist.report.output import Table
from kernel_scientist.scientist.context import bug_taxonomy
from kernel_scientist.scientist.context.outcomes import NOT_PAIRED

MOST_FULL = 120
"""Kernels that a page shows in full, so that the page of a thousand kernels stays below two megabytes."""
MOST_LINES, MOST_TEXT = 120, 1500
"""Most lines of a diff or a source, and most characters of a text."""
CASES = {"case": "case", "time_us": "us", "against_us": "reference, us", "ratio": "speedup", "floor_us": "floor, us"}
PREDICTED_CASES = {"case": "case", "time_us": "predicted, us", "floor_us": "floor, us", "limited_by": "limited by"}
FAILURES = {
    "bug": "what went wrong",
    "verdict": "verdict",
    "count": "kernels",
    "kernel": "example",
    "reason": "its reason",
}
NO_BUG = {
    Verdict.NO_CHANGE: "compiled to its base's machine code",
    Verdict.COMPILED: "compiled, not executed",
    Verdict.DECLINED: "declined by its writer",
    Verdict.ABSENT: "no reply contained a kernel",
    Verdict.INFRASTRUCTURE: "not the kernel's fault",
}


@dataclass(frozen=True)
class Card:
    """What a page says of one kernel when it is opened."""

    facts: Sequence[tuple[str, str]]
    experiment: str
    edits: Sequence[str]
    reason: str
    """Why it failed; empty for a correct kernel."""
    cases: Table | None
    lines: Sequence[str]
    """Where its predicted time goes by source line: what it is about, then a table; empty if nothing is known."""
    code: Sequence[tuple[str, str]]
    """Lines of the diff against the base, or of a seed's source, each with its CSS class."""
    left_out: int
    """Lines that are left out."""


@dataclass(frozen=True)
class Line:
    """A kernel in the tree: its children follow it, one level deeper."""

    name: str
    depth: int
    title: str
    score: str
    verdict: str
    style: str
    card: Card | None


def tree(population: Population, champion: str | None) -> list[Line]:
    """Return all kernels, each behind its base: the best, the champion's ancestors and the latest with a card."""
    entries = {entry.name: entry for entry in population.entries()}
    full, line = set(_important(population, champion)), set(_ancestors(population, champion))
    children: dict[str | None, list[str]] = defaultdict(list)
    for entry in entries.values():
        children[entry.base if entry.base in entries else None].append(entry.name)
    lines, waiting = list[Line](), [(name, 0) for name in reversed(children[None])]
    while waiting:
        name, depth = waiting.pop()
        entry, card = entries[name], _card(population, population.get(name)) if name in full else None
        failed = "" if entry.verdict is Verdict.OK else entry.verdict.value
        style = "champion" if name == champion else "line" if name in line else "failed" if failed else ""
        score = tables.speed_text(population.get(name)) if entry.score else ""
        title = entry.title or population.get(name).kernel.title
        lines.append(Line(name, depth, title, score, failed, style, card))
        waiting += [(child, depth + 1) for child in sorted(children[name], key=order, reverse=True)]
    return lines


def _important(population: Population, champion: str | None) -> list[str]:
    """Return the names of at most `MOST_FULL` kernels: the champion's ancestors, the best, failures, the latest."""
    latest = [entry.name for entry in reversed(population.entries())]
    best = [entry.name for entry in population.ranking(MOST_FULL // 2)]
    candidates = [*_ancestors(population, champion), *best, *population.failures(MOST_FULL // 4)[::-1], *latest]
    return list(dict.fromkeys(candidates))[:MOST_FULL]


def _ancestors(population: Population, name: str | None) -> Iterator[str]:
    while name is not None and name in population:
        yield name
        name = population.entry(name).base


def _card(population: Population, trial: Trial) -> Card:
    kernel, evaluation, experiment = trial.kernel, trial.evaluation, trial.kernel.experiment
    code, left_out = _code(population, trial)
    return Card(
        facts=list(_facts(population, trial)),
        experiment=(experiment.description if experiment else kernel.report)[:MOST_TEXT],
        edits=experiment.rubric if experiment else (),
        reason=("" if evaluation.verdict is Verdict.OK else evaluation.reason)[:MOST_TEXT],
        cases=_cases(trial),
        lines=_lines(trial),
        code=code,
        left_out=left_out,
    )


def _facts(population: Population, trial: Trial) -> Iterator[tuple[str, str]]:
    kernel, evaluation = trial.kernel, trial.evaluation
    yield "verdict", evaluation.verdict.value
    for speedup in evaluation.speedups:
        against = "the reference" if speedup.against == REFERENCE else speedup.against
        found = "faster by the test" if speedup.faster else "not shown to be faster"
        yield f"speedup over {against}", f"{speedup}, {found}"
    if evaluation.busy:
        yield "conditions", evaluation.busy
    predicts = kernel.experiment is not None and not kernel.tuned_from and evaluation.verdict is Verdict.OK
    if kernel.experiment and predicts:
        low, high = kernel.experiment.uplift
        kind = "by the model" if evaluation.by_model else "measured in one run"
        uplift = gain_text(population, trial) or NOT_PAIRED
        yield "uplift over base", f"predicted {low:+.0f} to {high:+.0f} %; {kind}: {uplift}"
    if kernel.attempts:
        yield "repaired", "; ".join(f"{a.verdict.value}: {a.reason[:120]}" for a in kernel.attempts)
    if kernel.authors:
        yield "by", ", ".join(f"{author.model} ({role})" for role, author in kernel.authors.items())
    if kernel.llm_calls:
        tokens = sum(call.input_tokens + call.output_tokens for call in kernel.llm_calls)
        yield "model calls", f"{len(kernel.llm_calls)}, {tokens} tokens, {sum(c.usd for c in kernel.llm_calls):.4f} USD"
    if evaluation.labels:
        yield "labels", ", ".join(evaluation.labels)


def _cases(trial: Trial) -> Table | None:
    evaluation = trial.evaluation
    if evaluation.by_model and evaluation.predictions:
        return Table(PREDICTED_CASES, [p.model_dump() for p in evaluation.predictions])
    speedup = evaluation.speedup_over(REFERENCE)
    pairs = speedup.cases if speedup else {}
    rows = [
        {
            "case": timing.case,
            "time_us": timing.time_us,
            "against_us": pair.against_us if pair else None,
            "ratio": factor(pair.ratio, pair.interval) if pair else "",
            "floor_us": timing.floor_us,
        }
        for timing in evaluation.timings
        for pair in [pairs.get(timing.case)]
    ]
    return Table(CASES, rows) if rows else None


def _lines(trial: Trial) -> list[str]:
    """Return the lines of the case that is furthest from its floor, of those whose lines are known."""
    known = [p for p in trial.evaluation.predictions if p.lines]
    if not known:
        return []
    worst = min(known, key=lambda p: p.floor_us / p.time_us)
    return [f"{worst.case}: {source_line.meaning(worst.lines)}", *source_line.table(worst.lines)]


def _code(population: Population, trial: Trial) -> tuple[list[tuple[str, str]], int]:
    """Return the first lines of the diff against the base, or of a seed's source, and how many are left out."""
    kernel = trial.kernel
    after = kernel.source.splitlines()
    if kernel.base is None or kernel.base not in population:
        return [("", line) for line in after[:MOST_LINES]], max(0, len(after) - MOST_LINES)
    before = population.get(kernel.base).kernel.source.splitlines()
    diff = list(difflib.unified_diff(before, after, kernel.base, kernel.name, lineterm="", n=2))
    classes = {"+": "add", "-": "del", "@": "at"}
    return [(classes.get(line[:1], ""), line) for line in diff[:MOST_LINES]], max(0, len(diff) - MOST_LINES)


def failures(population: Population) -> Table | None:
    """Return how many kernels failed by verdict and kind of bug, with an example each; None if none failed."""
    groups: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in map(population.get, population.failures(len(population))):
        verdict = trial.evaluation.verdict
        if verdict is not Verdict.OK:
            bug = NO_BUG[verdict] if verdict in NO_BUG else bug_taxonomy.classify(trial.evaluation).name
            groups[bug, verdict.value].append(trial)
    rows = [
        {
            "bug": bug,
            "verdict": verdict,
            "count": len(found),
            "kernel": found[0].kernel.name,
            "link": found[0].kernel.name,
            "reason": found[0].evaluation.reason[:160],
        }
        for (bug, verdict), found in sorted(groups.items(), key=lambda group: -len(group[1]))
    ]
    return Table(FAILURES, rows) if rows else None


def best(population: Population, champion: Trial | None, by_model: bool, most: int) -> Table:
    """Return the best kernels with their times, and predicted and actual uplift over their bases."""
    rows: list[dict[str, str]] = []
    for trial in population.ranked(most):
        experiment = trial.kernel.experiment
        is_predicted = experiment is not None and not trial.kernel.tuned_from
        predicted = "{:+.0f} to {:+.0f}".format(*experiment.uplift) if experiment and is_predicted else ""
        unknown = NOT_PAIRED if experiment and not trial.evaluation.by_model else ""
        uplifts = {"predicted": predicted, "uplift": gain_text(population, trial) or unknown}
        rows.append({**tables.kernel_row(trial, champion), **uplifts, "link": trial.kernel.name})
    columns = tables.PREDICTED if by_model else tables.MEASURED
    measured = "by the model" if by_model else "measured beside it"
    return Table({**columns, "predicted": "uplift over base, predicted %", "uplift": measured}, rows)


def gain_text(population: Population, trial: Trial) -> str:
    """Return the gain over the base in percent with its interval, measured or predicted; empty if it is not known."""
    if trial.evaluation.by_model:
        ratio = population.predicted_gain(trial)
        return f"{100 * (ratio - 1):+.1f} %" if ratio else ""
    pair = over_base(trial)
    return percent(pair.ratio, pair.interval) if pair else ""
