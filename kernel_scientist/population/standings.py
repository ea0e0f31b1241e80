"""The ranking of a campaign's finalists, and the reason for the choice of the champion.

After the final the number is the speedup over the reference in the final, where all finalists were timed in one run.
Before it there is an order (`population.ranking`), and each kernel's speedup in its own run.
"""

from kernel_scientist.population.final import Final, finalists
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.campaign_result import FinalistResult, OwnRun
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.factors import factor, number
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict

MOST_NAMED = 12
"""Kernels that may be as fast as the incumbent, of which so many are named."""


def final_rows(population: Population, final: Final | None) -> tuple[FinalistResult, ...]:
    """Return the finalists, fastest first, with times and ratios of the final; empty without a final."""
    if final is None:
        return ()
    return tuple(
        FinalistResult(
            rank=rank,
            kernel=name,
            geomean_us=final.geomean_us(name),
            reference_us=final.geomean_us(REFERENCE),
            speedup=final.speedup(name),
            interval=final.interval(name),
            recorded=recorded(population.get(name)),
        )
        for rank, name in enumerate(final.ranking(), start=1)
    )


def recorded(trial: Trial) -> OwnRun:
    """Return time, reference time and speedup of a kernel's own run; older records have no reference time."""
    speedup = trial.evaluation.speedup_over(REFERENCE)
    return OwnRun(
        geomean_us=trial.evaluation.geomean_us,
        reference_us=speedup.against_us if speedup and speedup.cases else None,
        speedup=speedup.ratio if speedup else None,
        interval=speedup.interval if speedup and speedup.known else None,
    )


def reason(population: Population, final: Final | None) -> str:
    """Return the reason for the choice of the champion."""
    incumbent = population.best()
    if incumbent is None:
        return no_champion(population)
    name = incumbent.kernel.name
    if incumbent.evaluation.by_model:
        return f"The performance model predicts that {name} is the fastest."
    if final is not None and not final.failure:
        return _won(population, final)
    test = incumbent.evaluation.test
    won = f"A test found {name} faster than {test.against}, the incumbent before it: {test} in one run." if test else ""
    if test is None or test.against == REFERENCE:
        won = f"{name} was timed first."
    if final is not None:
        return f"{won} The final failed: {final.failure}"
    if others := finalists(population, MOST_NAMED)[1:]:
        return f"{won} There was no final: no test told it from {', '.join(t.kernel.name for t in others)}."
    timed = sum(trial.evaluation.geomean_us is not None for trial in population)
    rest = "Every other kernel was found slower, or is estimated to be." if timed > 1 else "No other kernel was timed."
    return f"{won} {rest}"


def no_champion(population: Population) -> str:
    """Return why a campaign has no champion."""
    if population.verdicts()[Verdict.OK]:
        return "No kernel was timed; some are right."
    if told := undecided(population):
        return f"{told[0].upper()}{told[1:]}."
    if unexecuted(population):
        return (
            "No kernel was executed: nothing here executes what was compiled; targets rocm, pool:NAME and kernelbot do."
        )
    return "No kernel is correct." if population.entries() else "No kernel was tried."


def unexecuted(population: Population) -> bool:
    """Whether nobody knows if a kernel is right, because it was compiled and could not be executed."""
    entries = population.entries()
    unknown = any(entry.verdict is Verdict.COMPILED and not entry.skipped for entry in entries)
    return unknown and all(entry.verdict is not Verdict.OK for entry in entries)


def undecided(population: Population) -> str:
    """Return why nobody knows if a first kernel is right, in a few words; empty if all were judged or one is right."""
    unjudged = [entry for entry in population.unjudged() if not population.has_source(entry.digest)]
    if not unjudged or population.verdicts()[Verdict.OK]:
        return ""
    why = population.get(unjudged[-1].name).evaluation.reason
    return f"nothing was decided about the first kernels: {why}; a resume tries them again"


def _won(population: Population, final: Final) -> str:
    def time(name: str) -> str:
        speed = factor(final.speedup(name), final.interval(name))
        return f"{number(final.geomean_us(name))} us, {speed} the reference's speed"

    names = final.ranking()
    text = f"{final.champion} is the fastest of {len(names)} finalists timed in one run: {time(final.champion)}."
    if (winner := final.champion) != final.incumbent:
        text += f" The incumbent of the search, {final.incumbent}, took {time(final.incumbent)}."
    left_out = [t.kernel.name for t in finalists(population, MOST_NAMED) if t.kernel.name not in {*names, winner}]
    if left_out:
        text += f" Not in the final, which takes {len(names)} kernels (validate.finalists): {', '.join(left_out)}."
    return text


def lineage(population: Population, kernel: Kernel) -> list[str]:
    """Return the experiments that led to a kernel, beginning with its seed."""
    line: list[str] = []
    while True:
        line.append(f"{kernel.name} {kernel.experiment.title if kernel.experiment else kernel.report}")
        if not kernel.base:
            return line[::-1]
        kernel = population.get(kernel.base).kernel
