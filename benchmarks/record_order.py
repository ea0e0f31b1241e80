"""Does what a designer is told agree with a final, on a busy machine? `python -m benchmarks.record_order`.

Runs a small campaign of the playbook per problem beside busy loops, then times up to `--finalists` of its kernels,
spread over the order, in one run. Prints Spearman's correlation of that run's order with
- order: the estimate that orders kernels (`population.ranking`), as in the selector's table;
- record: the gains over the bases that the designer is told, multiplied from the seed on;
- own_runs: the speedups over the reference of the kernels' own runs, which say less and are shown for comparison.

Figures go to benchmarks/results/record_order.json, with machine and load.
"""

import argparse
import itertools
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.parts import RESULTS, measured, write
from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.campaign.engine import Engine
from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.evaluate.timing.plan import TimedSource
from kernel_scientist.population.entry import over_base
from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population
from kernel_scientist.population.prediction_accuracy import rank_correlation
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.records.params import load

PROBLEMS = ("fp8-blockwise-gemm", "softmax", "rmsnorm")
SETTINGS = ("harness.noise_runs=0", "tuning.tries=0", "language=cpp", "target=cpu", "knowledge.distil_every=0")


def main() -> None:
    """Run the campaigns, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", type=int, default=6, help="busy loops beside the campaigns")
    parser.add_argument("--finalists", type=int, default=8)
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=4, help="for the search of each campaign")
    parser.add_argument("problems", nargs="*", default=PROBLEMS)
    options = parser.parse_args()
    budget = (f"search.generations={options.generations}", f"budget.minutes={options.minutes}")
    with tempfile.TemporaryDirectory() as folder, measured() as found:
        os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder}/mlflow.db"
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.load)]
        try:
            found["busy_loops"] = options.load
            for problem in options.problems:
                found[problem] = _compared((f"problem={problem}", *budget), options.finalists)
                print(problem, found[problem], flush=True)
        finally:
            for process in busy:
                process.kill()
    write(RESULTS / "record_order.json", found)


def _compared(settings: Sequence[str], most: int) -> dict[str, Any]:
    began = time.monotonic()
    with evaluation_context(load(None, [*SETTINGS, *settings])) as context:
        campaign = Campaign(context)
        Engine(campaign, lambda _name, _activity: None, lambda _trial: None, lambda: None).run()
        population = campaign.population
        chosen = _spread([population.get(e.name) for e in population.ranking() if _record(population, e.name)], most)
        final = _final(context, chosen)
        campaign.finish()
    names = final.ranking()
    speeds = [-math.log(final.geomean_us(name)) for name in names]
    own = [math.log(population.entry(name).score) for name in names]
    record = [_record(population, name) or 0.0 for name in names]
    return {
        "kernels": len(population),
        "timed": len(population.ranking()),
        "final_us": {name: round(final.geomean_us(name), 1) for name in names},
        "order": rank_correlation([population.estimate(name) for name in names], speeds),
        "record": rank_correlation(record, speeds),
        "own_runs": rank_correlation(own, speeds),
        "told_apart": _told_apart(population, final),
        "busy": final.busy,
        "seconds": round(time.monotonic() - began),
    }


def _spread(trials: Sequence[Trial], most: int) -> list[Trial]:
    """Return so many kernels, evenly spread from the first to the last."""
    if len(trials) <= most:
        return list(trials)
    return [trials[round(n * (len(trials) - 1) / (most - 1))] for n in range(most)]


def _final(context: EvaluationContext, trials: Sequence[Trial]) -> Final:
    """Time kernels in one run, whose every stage is run."""
    evaluator, first = context.evaluator, trials[0]
    others = [TimedSource.of(t.kernel).model_copy(update={"is_finalist": True}) for t in trials[1:]]
    patient = evaluator.with_harness(context.params.harness.model_copy(update={"noise_runs": 0, "drop_after": 0}))
    with context.device():
        timed = patient.time(first.kernel, first.evaluation, [*others, evaluator.reference()], REFERENCE)
    return Final.of(first.kernel.name, timed)


def _told_apart(population: Population, final: Final) -> dict[str, int]:
    """Return of how many pairs of finalists the final tells which is faster, and how many of these the order has so.

    It does if the intervals of their speedups over the reference do not overlap: the others are a matter of chance.
    """
    bounds = [(name, interval) for name in final.ranking() if (interval := final.interval(name))]
    pairs = [(one, other) for (one, a), (other, b) in itertools.combinations(bounds, 2) if a[0] > b[1]]
    agree = sum(population.estimate(one) > population.estimate(other) for one, other in pairs)
    return {"pairs": len(pairs), "ordered_alike": agree}


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
