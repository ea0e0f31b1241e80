"""Bars: what a champion is timed beside: others' kernels, and the reference compiled by torch.compile.

A bar that fails is reported, and the campaign goes on.
"""

from collections.abc import Collection
from pathlib import Path

from kernel_scientist.campaign.evaluation_context import EvaluationContext
from kernel_scientist.campaign.pool_evaluator import PoolEvaluator
from kernel_scientist.campaign.steps import decided, progress
from kernel_scientist.compilers.source import language_of, read_kernel
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.problems import reference_kernels
from kernel_scientist.records.errors import InfrastructureError, SetupError
from kernel_scientist.records.evaluation import Bar, Evaluation
from kernel_scientist.records.kernel import COMPILED, Kernel, Verdict

Checked = tuple[Bar, TimedSource | None]
"""A bar with its source; the source is None if it failed or is not timed here."""


def checked(context: EvaluationContext, taken: Collection[str], source: str | None = None) -> list[Checked]:
    """Compile and check the bars of a problem. `taken`: names of the other sources; `source`: of the champion."""
    names, found = set(taken), list[Checked]()
    for file in reference_kernels.files(context.problem.name, reference_kernels.BAR):
        name = file.stem
        while name in names:
            name += "-bar"
        names.add(name)
        bar, timed = _checked(context, name, file)
        if timed is None or timed.source != source:
            found.append((bar, timed))
    return found


def torch_compile(context: EvaluationContext) -> list[Checked]:
    """Compile the problem's reference by torch.compile, if `validate.torch_compile` asks for it."""
    if not context.params.validate_.torch_compile or _predicts(context):
        return []
    evaluator = context.evaluator
    if isinstance(evaluator, PoolEvaluator) or context.target.board:
        reason = "the reference is compiled only where this process times kernels"
        return [(Bar(name=COMPILED, verdict=None, reason=reason), None)]
    with context.quiet.building():
        progress.info("compiling the reference by torch.compile")
        try:
            return [evaluator.compiled_reference()]
        except InfrastructureError as error:
            return [(Bar(name=COMPILED, verdict=Verdict.INFRASTRUCTURE, reason=str(error)), None)]


def predicted_references(context: EvaluationContext, champion: Evaluation) -> list[Bar]:
    """Predict the reference's times on a model target, eager and compiled, on the cases predicted for a champion."""
    if not context.params.validate_.torch_compile or not _predicts(context) or not champion.predictions:
        return []
    from kernel_scientist.gpu.model import references  # it imports torch

    assert context.target.model is not None
    names = {one.case for one in champion.predictions}
    cases = [case for case in context.evaluator.profile.benchmarks if case.name in names]
    return references.predicted(context.problem, cases, context.target.model)


def _checked(context: EvaluationContext, name: str, file: Path) -> Checked:
    try:
        text = read_kernel(file)
    except SetupError as error:
        return Bar(name=name, verdict=Verdict.COMPILE_ERROR, reason=str(error)), None
    kernel = Kernel(name=name, language=language_of(text), source=text)
    if reason := _not_timed(context, kernel):
        return Bar(name=name, verdict=None, reason=reason), None
    evaluation = _evaluated(context, kernel)
    is_right = evaluation.verdict is Verdict.OK
    predicted_us = evaluation.predicted_us if is_right and _predicts(context) else None
    bar = Bar(name=name, verdict=evaluation.verdict, reason=evaluation.reason, predicted_us=predicted_us)
    return bar, TimedSource.of(kernel) if is_right and not _predicts(context) else None


@decided
def _evaluated(context: EvaluationContext, kernel: Kernel) -> Evaluation:
    """Check a bar on all cases that the champion is timed on; on a model target also predict its time."""
    evaluator = context.evaluator
    if isinstance(evaluator, PoolEvaluator):
        return Evaluation(verdict=Verdict.OK)  # a host checks its outputs when it times it
    evaluation = context.steps.compile(context, kernel, (*evaluator.profile.tests, *evaluator.profile.held_out))
    if evaluation.verdict is Verdict.OK and _predicts(context):
        return evaluator.time(kernel, evaluation, ())
    return evaluation


def _not_timed(context: EvaluationContext, kernel: Kernel) -> str:
    """Return why a kernel's language is not timed here; empty if it is."""
    target, language, ours = context.target, kernel.language, context.params.language
    has_gpu = target.device != "cpu" or target.board or bool(target.pool)
    if has_gpu or (language == ours and (language == "cpp" or _predicts(context))):
        return ""
    if language == ours:
        return f"{language} kernels are not timed on a CPU"
    return f"it is written in {language}; this target times kernels in {ours}"


def _predicts(context: EvaluationContext) -> bool:
    """Whether times are predicted by a model, not measured."""
    return context.target.model is not None and not context.target.board
