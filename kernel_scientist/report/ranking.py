"""The ranking of a campaign's kernels by one number, and the reason why the champion is the champion.

After the final the number is the speedup over the reference in the final, where all finalists were timed in one run.
Before it, and for other kernels, it is the recorded score: the speedup in the kernel's own run.
"""

from collections.abc import Sequence
from typing import Any

from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population, score
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE


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
    """Return why the champion is the champion, and why not a kernel with a higher recorded speedup."""
    incumbent = population.best()
    if incumbent is None:
        return "No kernel is correct and timed."
    name = incumbent.kernel.name
    if incumbent.evaluation.by_model:
        return f"The machine model predicts that {name} is the fastest."
    higher = [t for t in population.ranked() if score(t) > score(incumbent)]
    if final is None:
        return f"A test found {name} faster than the incumbent before it.{_without_final(higher)}"
    if final.failure:
        return f"A test found {name} faster than the incumbent before it. The final failed: {final.failure}"
    return _won(population, final)


def _without_final(higher: Sequence[Trial]) -> str:
    if not higher:
        return " No kernel has a higher recorded speedup."
    return f" Higher recorded speedups are of other runs, and there was no final: {_listed(higher)}."


def _won(population: Population, final: Final) -> str:
    champion, ranking = final.champion, final.ranking()
    recorded = score(population.get(champion))
    text = f"{champion} is the fastest of {len(ranking)} finalists timed in one run: {_time(final, champion)}."
    higher = [t for t in population.ranked() if score(t) > recorded and t.kernel.name != champion]
    for trial in (t for t in higher if t.kernel.name in final.times_us):
        name = trial.kernel.name
        text += f" {name}, recorded at {score(trial):.2f}x in another run, took {_time(final, name)}."
    if others := [t for t in higher if t.kernel.name not in final.times_us]:
        text += f" Not in the final, which takes {len(ranking)} kernels (validate.finalists): {_listed(others)}."
    return text


def _listed(trials: Sequence[Trial]) -> str:
    return ", ".join(f"{t.kernel.name} {score(t):.2f}x" for t in trials)


def _time(final: Final, name: str) -> str:
    return f"{final.geomean_us(name):.5g} us, {final.speedup(name):.2f}x the reference's speed"
