"""The ranking of a campaign's kernels by one number, and the reason for the choice of the champion.

After the final the number is the speedup over the reference in the final, where all finalists were timed in one run.
Before it, and for other kernels, it is the recorded score: the speedup in the kernel's own run.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from kernel_scientist.population.entry import score
from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.report.output import number, ratio


def final_rows(population: Population, final: Final | None) -> list[dict[str, Any]]:
    """Return the finalists, fastest first, with times and ratios of the final; empty without a final."""
    if final is None:
        return []
    return [
        {
            "rank": rank,
            "kernel": name,
            "geomean_us": final.geomean_us(name),
            "reference_us": final.geomean_us(REFERENCE),
            "speedup": final.speedup(name),
            "recorded": recorded(population.get(name)),
        }
        for rank, name in enumerate(final.ranking(), start=1)
    ]


def recorded(trial: Trial) -> dict[str, float | None]:
    """Return time, reference time and speedup of a kernel's own run; older records have no reference time."""
    speedup = trial.evaluation.speedup_over(REFERENCE)
    return {
        "geomean_us": trial.evaluation.geomean_us,
        "reference_us": speedup.against_us if speedup and speedup.cases else None,
        "speedup": speedup.ratio if speedup else None,
    }


def reason(population: Population, final: Final | None) -> str:
    """Return the reason for the choice of the champion over kernels with a higher recorded speedup."""
    incumbent = population.best()
    if incumbent is None:
        return no_champion(population)
    name = incumbent.kernel.name
    if incumbent.evaluation.by_model:
        return f"The performance model predicts that {name} is the fastest."
    if final is not None and not final.failure:
        return _won(population, final)
    first = len(incumbent.evaluation.speedups) == 1
    test = f"{name} was timed first." if first else f"A test found {name} faster than the incumbent before it."
    if final is not None:
        return f"{test} The final failed: {final.failure}"
    if higher := _higher(population, name):
        return f"{test} Higher recorded speedups are of other runs, and there was no final: {_listed(higher)}."
    return f"{test} No kernel has a higher recorded speedup."


def no_champion(population: Population) -> str:
    """Return why a campaign has no champion."""
    if population.verdicts()[Verdict.OK]:
        return "No kernel was timed; some are right."
    if unexecuted(population):
        return (
            "No kernel was executed: nothing here executes what was compiled; targets rocm, pool:NAME and kernelbot do."
        )
    return "No kernel is correct."


def unexecuted(population: Population) -> bool:
    """Whether nobody knows if a kernel is right, because it was compiled and could not be executed."""
    entries = population.entries()
    unknown = any(entry.verdict is Verdict.COMPILED and not entry.skipped for entry in entries)
    return unknown and all(entry.verdict is not Verdict.OK for entry in entries)


def _won(population: Population, final: Final) -> str:
    def time(name: str) -> str:
        return f"{number(final.geomean_us(name))} us, {ratio(final.speedup(name))} the reference's speed"

    count, higher = len(final.ranking()), _higher(population, final.champion)
    text = f"{final.champion} is the fastest of {count} finalists timed in one run: {time(final.champion)}."
    for trial in (t for t in higher if t.kernel.name in final.times_us):
        text += f" {_listed([trial], ', recorded at')} in another run, took {time(trial.kernel.name)}."
    if others := [t for t in higher if t.kernel.name not in final.times_us]:
        text += f" Not in the final, which takes {count} kernels (validate.finalists): {_listed(others)}."
    return text


def _higher(population: Population, name: str) -> list[Trial]:
    higher = itertools.takewhile(lambda entry: entry.score > population.entry(name).score, population.ranking())
    return [population.get(entry.name) for entry in higher]


def _listed(trials: Sequence[Trial], word: str = "") -> str:
    return ", ".join(f"{t.kernel.name}{word} {ratio(score(t))}" for t in trials)


def lineage(population: Population, kernel: Kernel) -> list[str]:
    """Return the experiments that led to a kernel, beginning with its seed."""
    line: list[str] = []
    while True:
        line.append(f"{kernel.name} {kernel.experiment.title if kernel.experiment else kernel.report}")
        if not kernel.base:
            return line[::-1]
        kernel = population.get(kernel.base).kernel
