"""One kernel through the whole judge."""

from pathlib import Path
from typing import Any

from prefect import flow

from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.compile.source import language_of, read_kernel
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
from tasks.counting import counted
from tasks.timing import time_kernel


@flow(name="evaluate", flow_run_name="evaluate {file}")
def evaluate(
    file: str,
    overrides: list[str] | None = None,
    against: str | None = None,
    params_file: str | None = None,
) -> Any:
    """Compile, check and time one kernel file, beside the reference and `against` (another file).

    Returns what `kernel-scientist evaluate --json` prints.
    """
    params = load(Path(params_file) if params_file else environment.root() / "params.yaml", overrides or ())
    text = read_kernel(Path(file))
    params = params.model_copy(update={"language": language_of(text)})
    with evaluation_context(params) as lab:
        kernel = Kernel(name=apart(Path(file).stem, [REFERENCE], "kernel"), language=params.language, source=text)
        rivals = contestants(lab, kernel, against)
        try:
            evaluation = compile_kernel(lab, kernel)
            evaluation = check_kernel(lab, kernel, evaluation)
            evaluation = counted(lab, kernel, time_kernel(lab, kernel, evaluation, rivals))
        except InfrastructureError as error:
            evaluation = Evaluation(verdict=Verdict.INFRASTRUCTURE, reason=str(error))
        return summaries.evaluation_summary(lab, evaluation, rivals[-1].name)


def contestants(lab: EvaluationContext, kernel: Kernel, against: str | None) -> list[TimedSource]:
    """Return whom a kernel is timed beside; the last is the one it is compared with."""
    rivals = [lab.evaluator.reference()]
    if against:
        name = apart(f"{Path(against).stem} (against)", [REFERENCE, kernel.name], "against")
        rivals.append(TimedSource(name=name, source=read_kernel(Path(against))))
    return rivals
