"""Times of a problem's reference and seeds: what a campaign starts from."""

from pathlib import Path

from kernel_scientist.campaign import results
from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.compilers.source import read_kernel
from kernel_scientist.problems import frozen
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.records.params import Params
from kernel_scientist.records.problem_result import BaselineResult, SeedResult


def measure(params: Params, cases: Path) -> BaselineResult:
    """Verify the frozen cases, then time every seed against the reference.

    Raises InfrastructureError for a seed that is not correct.
    """
    with evaluation_context(params) as context:
        return BaselineResult(
            problem=context.problem.name,
            target=context.address.name,
            frozen_cases=frozen.verify(context.problem, params.profile, cases),
            seeds=tuple(_seed(context, file) for file in context.problem.seeds(params.language)),
        )


def _seed(context: EvaluationContext, file: Path) -> SeedResult:
    """Check a seed and time it against the reference."""
    target = context.target
    kernel = Kernel(name=file.stem, language=context.params.language, source=read_kernel(file))
    evaluation = context.steps.compile(context, kernel)
    with context.device(f"time seed {kernel.name}"):
        evaluation = target.time(kernel, evaluation, [target.reference()])
    if evaluation.verdict is not Verdict.OK:
        raise InfrastructureError(f"seed {file}: {evaluation.verdict.value}: {evaluation.reason}")
    speedup = evaluation.speedup_over(REFERENCE)
    if speedup is None:
        return SeedResult(kernel=kernel.name, geomean_us=results.rounded(evaluation.geomean_us))
    time_us, reference_us = results.rounded((speedup.time_us, speedup.against_us))
    return SeedResult(
        kernel=kernel.name,
        geomean_us=time_us,
        reference_us=reference_us,
        speedup=reference_us / time_us,
        interval=results.rounded(speedup.interval) if speedup.known else None,
    )
