"""The search of a kernel's tunables, by whatever evaluates a campaign's kernels."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kernel_scientist.campaign.pool.evaluator import PoolEvaluator
from kernel_scientist.campaign.tuning import tuner
from kernel_scientist.compile.fingerprint import fingerprint
from kernel_scientist.records.kernel import Kernel

if TYPE_CHECKING:
    from kernel_scientist.campaign.campaign import Campaign


def best(campaign: Campaign, base: Kernel, name: str) -> Kernel | None:
    """Return the best configuration of a kernel as a kernel of that name; None if there is none or no time for it."""
    from kernel_scientist.campaign.tuning.model_tuner import ModelTuner  # these import the compilers for GPUs
    from kernel_scientist.evaluate.predicted import PredictedEvaluator

    started, evaluator, plan = time.monotonic(), campaign.context.evaluator, campaign.plan

    def stop() -> bool:
        return evaluator.stopped.is_set() or plan.late() or plan.tuned_enough(time.monotonic() - started)

    def is_tried(source: str) -> bool:
        return campaign.population.has_source(fingerprint(source))

    if isinstance(evaluator, PredictedEvaluator):
        cases, tries = evaluator.profile.benchmarks, campaign.params.tuning.predictions
        return ModelTuner(evaluator.predict, cases, base, tries, is_tried, stop).tune(name)
    if isinstance(evaluator, PoolEvaluator):
        return evaluator.tune(base, name, plan.tuning_s())
    return tuner.tune(campaign.context, base, name, is_tried, stop)
