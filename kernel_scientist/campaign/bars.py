"""Bars: what a champion is timed beside: others' kernels, and the reference compiled by torch.compile.

A bar that fails is reported, and the campaign goes on.
"""

from collections.abc import Collection
from pathlib import Path

from kernel_scientist.campaign.evaluation_context import EvaluationContext
from kernel_scientist.campaign.steps import infrastructure_as_verdict
from kernel_scientist.campaign.target import Checked
from kernel_scientist.compilers.source import language_of, read_kernel
from kernel_scientist.problems import reference_kernels
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Bar, Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict


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
    if not context.params.validate_.torch_compile:
        return []
    with context.quiet.building():
        return context.target.compiled_references()


def predicted_references(context: EvaluationContext, champion: Evaluation) -> list[Bar]:
    """Predict the reference's times on a model target, eager and compiled, on the cases predicted for a champion."""
    return context.target.predicted_references(champion) if context.params.validate_.torch_compile else []


def _checked(context: EvaluationContext, name: str, file: Path) -> Checked:
    """Check a bar on all cases that the champion is timed on."""
    try:
        text = read_kernel(file)
    except SetupError as error:
        return Bar(name=name, verdict=Verdict.COMPILE_ERROR, reason=str(error)), None
    kernel, profile = Kernel(name=name, language=language_of(text), source=text), context.target.profile
    if reason := context.target.why_not_timed(kernel):
        return Bar(name=name, verdict=None, reason=reason), None
    checked = infrastructure_as_verdict(context.steps.compile)(context, kernel, (*profile.tests, *profile.held_out))
    return context.target.bar(kernel, checked)
