"""Evaluate one kernel file: compile, check, time, count."""

from pathlib import Path

from prefect import flow
from prefect.runtime import flow_run

from flows import work_pool
from flows.form import UNTOUCHED, Form, subject
from kernel_scientist.campaign import single
from kernel_scientist.records.params import load
from kernel_scientist.records.results import EvaluationResult
from tasks.chain import Chain


def _run_name() -> str:
    parameters = flow_run.get_parameters()
    return f"evaluate {Path(parameters['file']).name} for {subject(parameters)}"[:120]


@flow(name="evaluate", flow_run_name=_run_name)
def evaluate(
    file: str,
    params: Form = UNTOUCHED,
    overrides: list[str] | None = None,
    against: str | None = None,
    params_file: str | None = None,
) -> EvaluationResult:
    """Compile, check and time one kernel file; return the result of `kernel-scientist evaluate`.

    Args:
        file: The kernel.
        params: Parameters that take precedence over params.yaml.
        overrides: The same as `key.sub=value`.
        against: The file of another kernel that it is timed beside, with the reference.
        params_file: Another params.yaml.
    """
    settings = load(params_file, params.overrides(overrides))
    return single.evaluate(file, settings, against, Chain(), work_pool.connect)
