"""Evaluate one kernel file: compile, check, time, count."""

from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow

from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.compile.source import language_of, read_kernel
from kernel_scientist.evaluate.evaluator import TimedSource
from kernel_scientist.population.lineage import distinct_name
from kernel_scientist.records import environment
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.records.params import Params, load
from kernel_scientist.report import summaries
from tasks.evaluation import check_kernel, compile_kernel, counted, time_kernel


@flow(name="evaluate", flow_run_name="evaluate {file}")
def evaluate(
    file: str,
    overrides: list[str] | None = None,
    against: str | None = None,
    params_file: str | None = None,
) -> Any:
    """Compile, check and time one kernel file, against the reference and `against` (another file).

    Returns the JSON of `kernel-scientist evaluate`.
    """
    kernel = kernel_of(file)
    with evaluation_context(load_params(overrides, params_file, kernel)) as context:
        others = compared_with(context, kernel, against)
        try:
            evaluation = compile_kernel(context, kernel)
            evaluation = check_kernel(context, kernel, evaluation)
            measure = partial(context.evaluator.time, kernel, evaluation, others)
            evaluation = counted(context, kernel, time_kernel(context, kernel, measure))
        except InfrastructureError as error:
            evaluation = Evaluation(verdict=Verdict.INFRASTRUCTURE, reason=str(error))
        return summaries.evaluation_summary(context, evaluation, others[-1].name)


def kernel_of(file: str) -> Kernel:
    """Return the kernel in a file, named after the file. Raises SetupError when it is not a kernel."""
    source = read_kernel(Path(file))
    name = distinct_name(Path(file).stem, [REFERENCE], "kernel")
    return Kernel(name=name, language=language_of(source), source=source)


def load_params(overrides: list[str] | None, params_file: str | None, kernel: Kernel) -> Params:
    """Return the parameters for one kernel: its language is the language."""
    params = load(Path(params_file) if params_file else environment.root() / "params.yaml", overrides or ())
    return params.model_copy(update={"language": kernel.language})


def compared_with(context: EvaluationContext, kernel: Kernel, against: str | None) -> list[TimedSource]:
    """Return the sources that a kernel is timed against; the reported speedup is over the last one."""
    others = [context.evaluator.reference()]
    if against:
        name = distinct_name(f"{Path(against).stem} (against)", [REFERENCE, kernel.name], "against")
        others.append(TimedSource(name=name, source=read_kernel(Path(against))))
    return others
