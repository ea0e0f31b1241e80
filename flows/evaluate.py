"""One kernel through the whole judge."""

from pathlib import Path
from typing import Any

from prefect import flow

from kernel_scientist import environment, export
from kernel_scientist.errors import InfrastructureError
from kernel_scientist.harness.verifier import Contestant
from kernel_scientist.laboratory import laboratory
from kernel_scientist.languages.source import language_of, read_kernel
from kernel_scientist.params import load
from kernel_scientist.records import Evaluation, Kernel, Verdict
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
    with laboratory(params) as lab:
        kernel = Kernel(name=Path(file).stem, language=params.language, source=text)
        rivals = [lab.verifier.reference()]
        if against:
            rivals.append(Contestant(name=f"{Path(against).stem} (against)", source=read_kernel(Path(against))))
        try:
            evaluation = compile_kernel(lab, kernel)
            evaluation = check_kernel(lab, kernel, evaluation)
            evaluation = counted(lab, kernel, time_kernel(lab, kernel, evaluation, rivals))
        except InfrastructureError as error:
            evaluation = Evaluation(verdict=Verdict.INFRASTRUCTURE, reason=str(error))
        return export.evaluation_summary(lab, evaluation, rivals[-1].name)
