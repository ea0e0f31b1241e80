"""Confirm a champion in fresh processes, on held-out cases and new seeds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prefect import flow

from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.compile.source import language_of, read_kernel
from kernel_scientist.evaluate import confirmation
from kernel_scientist.evaluate.evaluator import TimedSource
from kernel_scientist.population.lineage import apart
from kernel_scientist.records import environment
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.records.params import load
from kernel_scientist.report import summaries
from tasks.compilation import compile_kernel
from tasks.correctness import check_kernel
from tasks.timing import confirm_once, time_kernel


@flow(name="validate", flow_run_name="validate {file}")
def validate(
    file: str,
    overrides: list[str] | None = None,
    against: str | None = None,
    params_file: str | None = None,
) -> Any:
    """Confirm one kernel file against the reference and the seeds; return what `validate --json` prints.

    It must be faster than `against` (a file) or, by default, than every seed that is not itself.
    """
    params = load(Path(params_file) if params_file else environment.root() / "params.yaml", overrides or ())
    text = read_kernel(Path(file))
    params = params.model_copy(update={"language": language_of(text)})
    with evaluation_context(params) as lab:
        kernel = Kernel(name=apart(Path(file).stem, [REFERENCE], "kernel"), language=params.language, source=text)
        rivals, named = contestants(lab, kernel, against)
        return summaries.validation_summary(lab, kernel, confirm(lab, kernel, rivals, named))


def contestants(lab: EvaluationContext, kernel: Kernel, against: str | None) -> tuple[list[TimedSource], str | None]:
    """Return whom a kernel is confirmed with, and the name of the one it must beat."""
    files = [Path(against)] if against else lab.problem.seeds(kernel.language)
    taken = (REFERENCE, kernel.name)
    seeds = [
        Kernel(name=apart(f.stem, taken, "against"), language=kernel.language, source=read_kernel(f)) for f in files
    ]
    rivals = [TimedSource.of(s) for s in seeds if s.digest != kernel.digest]
    return [lab.evaluator.reference(), *rivals], rivals[-1].name if rivals else None


def confirm(
    lab: EvaluationContext, kernel: Kernel, rivals: Sequence[TimedSource], against: str | None
) -> confirmation.Confirmation:
    """Check a kernel on every case, time it in several fresh sets of processes, decide."""
    try:
        evaluation = compile_kernel(lab, kernel)
        evaluation = check_kernel(lab, kernel, evaluation, confirmation.held_out_check(lab.evaluator))
        if evaluation.verdict is not Verdict.OK:
            return confirmation.refused(evaluation)
        if lab.target.model is not None:
            return confirmation.unmeasured(time_kernel(lab, kernel, evaluation, ()), lab.target.model.name)
        everyone = [TimedSource.of(kernel), *rivals]
        settings = lab.params.validate_
        runs = [confirm_once(lab, everyone, settings.blocks) for _ in range(settings.processes)]
    except InfrastructureError as error:
        return confirmation.refused(Evaluation(verdict=Verdict.INFRASTRUCTURE, reason=str(error)))
    return confirmation.conclude(lab.evaluator, evaluation, runs, everyone, against)
