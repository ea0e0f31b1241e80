"""Does what a designer is told agree with a final, on a busy machine? `python -m benchmarks.record_order`.

Runs a small campaign of the playbook per problem beside busy loops, then times up to `--finalists` of its kernels,
spread over the order, in one run of `--stages` stages. Prints Spearman's correlation of that run's order with
- order: the estimate that orders kernels (`population.ranking`), as in the selector's table;
- record: the gains over the bases that the designer is told, multiplied from the seed on;
- chain: the ratios to the incumbents, multiplied from the kernel that was timed first on; for comparison;
- own_runs: the speedups over the reference of the kernels' own runs; for comparison.

With `--think` the playbook takes as long for a design and for a kernel as a model does, so that the device is idle at
times. `interval` is how far a kernel's interval reaches from its ratio to the incumbent, as a factor: the median.

The final is a measurement, too. `halves` is the correlation of its even stages with its odd ones; `ceiling` is what a
perfect order is expected to reach with a final of that reliability. `told_apart`: the pairs that the final tells apart.

Figures go to benchmarks/results/record_order.json, with machine and load.
"""

import argparse
import functools
import itertools
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from benchmarks.parts import RESULTS, measured, write
from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.campaign.engine import Engine
from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.campaign.targets.local import Local
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.evaluation.timing import conditions, schedule
from kernel_scientist.evaluation.timing import statistics as estimates
from kernel_scientist.evaluation.timing.estimate import Samples
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.population.entry import over_base
from kernel_scientist.population.lineage import Population
from kernel_scientist.population.prediction_accuracy import rank_correlation
from kernel_scientist.records import factors
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.params import load
from kernel_scientist.scientist.playbook.agent import RuleBasedAgent

PROBLEMS = ("fp8-blockwise-gemm", "softmax", "rmsnorm")
SETTINGS = ("harness.noise_runs=0", "tuning.tries=0", "language=cpp", "target=cpu", "knowledge.distil_every=0")


def main() -> None:
    """Run the campaigns, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", type=int, default=6, help="busy loops beside the campaigns")
    parser.add_argument("--finalists", type=int, default=8)
    parser.add_argument("--stages", type=int, default=6, help="of the final; an even number")
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=4, help="for the search of each campaign")
    parser.add_argument("--think", type=float, default=0, help="seconds of a design and of a kernel")
    parser.add_argument("problems", nargs="*", default=PROBLEMS)
    options = parser.parse_args()
    budget = (f"search.generations={options.generations}", f"budget.minutes={options.minutes}")
    with tempfile.TemporaryDirectory() as folder, measured() as found:
        os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder}/mlflow.db"
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.load)]
        try:
            found |= {"busy_loops": options.load, "think_s": options.think}
            _slow_down(options.think)
            for problem in options.problems:
                found[problem] = _compared((f"problem={problem}", *budget), options)
                print(problem, found[problem], flush=True)
        finally:
            for process in busy:
                process.kill()
    write(RESULTS / "record_order.json", found)


def _slow_down(seconds: float) -> None:
    """Make the playbook think for so long."""

    def slowly(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def thought(*arguments: Any) -> Any:
            time.sleep(seconds)
            return method(*arguments)

        return thought

    for name in ("design", "write"):
        setattr(RuleBasedAgent, name, slowly(getattr(RuleBasedAgent, name)))


def _compared(settings: Sequence[str], options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    with evaluation_context(load(None, [*SETTINGS, *settings])) as context:
        campaign = Campaign(context)
        engine = Engine(campaign, lambda _name, _activity: None, lambda _trial: None, lambda: None)
        engine.run()
        population = campaign.population
        known = [population.get(e.name) for e in population.ranking() if _record(population, e.name) is not None]
        before = conditions.Load.now()
        final = _final(context, _spread(known, options.finalists), options.stages)
        busy = factors.busy({**conditions.describe(_evaluator(context).pool), **before.until_now()})
        campaign.finish()
    names = sorted(final.names, key=final.log_us)
    speeds = [-final.log_us(name) for name in names]
    halves = [[final.log_us(name, half) for name in names] for half in range(2)]
    reliability = rank_correlation(*halves)
    return {
        "kernels": len(population),
        "timed": len(population.ranking()),
        "interval": _reach(population),
        "final_us": {name: round(math.exp(final.log_us(name)), 1) for name in names},
        "order": rank_correlation([population.estimate(name) for name in names], speeds),
        "record": rank_correlation([_record(population, name) or 0.0 for name in names], speeds),
        "chain": rank_correlation([_chain(population, name) for name in names], speeds),
        "own_runs": rank_correlation([population.entry(name).score for name in names], speeds),
        "halves": reliability,
        "ceiling": _ceiling(reliability),
        "told_apart": _told_apart(population, final),
        "busy": busy,
        "seconds": round(time.monotonic() - began),
    }


def _reach(population: Population) -> float:
    """Return the median factor by which the intervals of the ratios to the incumbents reach from their middles."""
    tests = (t.evaluation.test for t in population)
    return round(statistics.median(math.sqrt(t.interval[1] / t.interval[0]) for t in tests if t and t.known), 2)


def _ceiling(halves: float | None) -> float | None:
    """Return the root of the whole final's reliability, which follows from its halves' (Spearman and Brown 1910)."""
    return None if halves is None else round(math.sqrt(max(0.0, 2 * halves / (1 + halves))), 3) if halves > 0 else 0.0


def _spread(trials: Sequence[Trial], most: int) -> list[Trial]:
    """Return so many kernels, evenly spread from the first to the last."""
    if len(trials) <= most:
        return list(trials)
    return [trials[round(n * (len(trials) - 1) / (most - 1))] for n in range(most)]


class _Final(NamedTuple):
    """One run of all finalists."""

    names: list[str]
    samples: Samples
    confidence: float

    def log_us(self, name: str, half: int | None = None) -> float:
        """Return the logarithm of a kernel's time, the mean over the cases; `half`: of every other stage."""
        chosen = slice(None) if half is None else slice(half, None, 2)
        return statistics.mean(estimates.time(blocks[chosen]).log for blocks in self.samples.table(name))

    def is_faster(self, one: str, other: str) -> bool:
        """Whether the interval of the ratio of their times says so."""
        ratio = estimates.ratio(self.samples.table(one), self.samples.table(other))
        return ratio.interval(self.confidence)[0] > 1


def _evaluator(context: EvaluationContext) -> Evaluator:
    assert isinstance(context.target, Local)
    return context.target.evaluator


def _final(context: EvaluationContext, trials: Sequence[Trial], stages: int) -> _Final:
    """Time kernels in one run, whose every stage is run."""
    evaluator, sources = _evaluator(context), [TimedSource.of(t.kernel) for t in trials]
    plan = replace(evaluator.plan(evaluator.profile.benchmarks, sources[0].name, None, margins=False), stages=stages)
    with context.device("time the finalists beside each other"):
        samples = schedule.run(evaluator.driver, plan, [*sources, evaluator.reference()])
    return _Final([source.name for source in sources], samples, evaluator.harness.confidence)


def _told_apart(population: Population, final: _Final) -> dict[str, int]:
    """Return of how many pairs of finalists the final tells which is faster, and how many of these the order has so."""
    pairs = [(one, other) for one, other in itertools.permutations(final.names, 2) if final.is_faster(one, other)]
    agree = sum(population.estimate(one) > population.estimate(other) for one, other in pairs)
    return {"pairs": len(pairs), "ordered_alike": agree}


def _chain(population: Population, name: str) -> float:
    """Return the product of the ratios to the incumbents of their time; as a logarithm."""
    entry = population.entry(name)
    pair = entry.over(entry.rival)
    assert pair is not None
    return pair.log + (_chain(population, entry.rival) if entry.is_relative else 0.0)


def _record(population: Population, name: str) -> float | None:
    """Return the product of the measured gains from a kernel's seed on, times the seed's place; as a logarithm.

    None if a kernel on the way was not timed beside its base.
    """
    total, trial = 0.0, population.get(name)
    while trial.kernel.base is not None:
        pair = over_base(trial)
        if pair is None:
            return None
        total, trial = total + math.log2(pair.ratio), population.get(trial.kernel.base)
    return total + population.estimate(trial.kernel.name)


if __name__ == "__main__":
    main()
