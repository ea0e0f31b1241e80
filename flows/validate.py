"""Confirm a kernel in fresh processes, on held-out cases and new seeds."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow

from flows.evaluate import kernel_of, load_params
from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.compile.source import read_kernel
from kernel_scientist.evaluate import confirmation
from kernel_scientist.evaluate.evaluator import TimedSource
from kernel_scientist.population.lineage import distinct_name
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.report import summaries
from tasks.evaluation import check_kernel, compile_kernel, time_kernel


@flow(name="validate", flow_run_name="validate {file}")
def validate(
    file: str,
    overrides: list[str] | None = None,
    against: str | None = None,
    params_file: str | None = None,
) -> Any:
    """Confirm one kernel file against the reference and the seeds; return the JSON of `kernel-scientist validate`.

    The kernel must be faster than `against` (a file; default: the last of the problem's other seeds).
    """
    kernel = kernel_of(file)
    with evaluation_context(load_params(overrides, params_file, kernel)) as context:
        others, baseline = compared_with(context, kernel, against)
        return summaries.validation_summary(context, kernel, confirm(context, kernel, others, baseline))


def compared_with(
    context: EvaluationContext, kernel: Kernel, against: str | None
) -> tuple[list[TimedSource], str | None]:
    """Return the sources that a kernel is timed against, and the name of the one that it must beat."""
    files = [Path(against)] if against else context.problem.seeds(kernel.language)
    taken = (REFERENCE, kernel.name)
    sources = {distinct_name(f.stem, taken, "against"): read_kernel(f) for f in files}
    others = [TimedSource(name=n, source=source) for n, source in sources.items() if source != kernel.source]
    return [context.evaluator.reference(), *others], others[-1].name if others else None


def confirm(
    context: EvaluationContext, kernel: Kernel, others: Sequence[TimedSource], baseline: str | None
) -> confirmation.Confirmation:
    """Check a kernel on every case, time it in several sets of fresh processes, compare it with `baseline`."""
    try:
        evaluation = compile_kernel(context, kernel)
        evaluation = check_kernel(context, kernel, evaluation, confirmation.held_out_check(context.evaluator))
        if evaluation.verdict is not Verdict.OK:
            return confirmation.of_failure(evaluation)
        if context.target.model is not None:
            return confirmation.unmeasured(context.evaluator.time(kernel, evaluation, ()), context.target.model.name)
        sources, settings = [TimedSource.of(kernel), *others], context.params.validate_
        measure = partial(confirmation.measure, context.evaluator, sources, settings.blocks)
        runs = [time_kernel(context, kernel, measure) for _ in range(settings.processes)]
    except InfrastructureError as error:
        return confirmation.of_failure(Evaluation(verdict=Verdict.INFRASTRUCTURE, reason=str(error)))
    return confirmation.conclude(context.evaluator, evaluation, runs, sources, baseline)
