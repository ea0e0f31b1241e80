"""The search of a kernel's tunables, by whatever evaluates a campaign's kernels."""

import time

from kernel_scientist.campaign.bench import Bench
from kernel_scientist.campaign.plan import Plan
from kernel_scientist.campaign.pool_evaluator import PoolEvaluator
from kernel_scientist.campaign.tuning import tuner
from kernel_scientist.compilers.fingerprint import fingerprint
from kernel_scientist.records.kernel import Kernel


def best(bench: Bench, plan: Plan, base: Kernel, name: str) -> Kernel | None:
    """Return the best configuration of a kernel as a kernel of that name; None if there is none or no time for it."""
    from kernel_scientist.campaign.tuning.model_tuner import ModelTuner  # these import the compilers for GPUs
    from kernel_scientist.evaluation.predicted import PredictedEvaluator

    started, evaluator = time.monotonic(), bench.evaluator

    def stop() -> bool:
        return evaluator.stopped.is_set() or plan.late() or plan.tuned_enough(time.monotonic() - started)

    def is_tried(source: str) -> bool:
        return plan.population.has_source(fingerprint(source))

    if isinstance(evaluator, PredictedEvaluator):
        cases, tries = evaluator.profile.benchmarks, bench.params.tuning.predictions
        return ModelTuner(evaluator.predict, cases, base, tries, is_tried, stop).tune(name)
    if isinstance(evaluator, PoolEvaluator):
        return evaluator.tune(base, name, plan.tuning_s())
    return tuner.tune(bench, base, name, is_tried, stop)
