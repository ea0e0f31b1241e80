"""Evaluate one kernel file: compile, check, time, count."""

from typing import Any

from prefect import flow

from flows import work_pool
from kernel_scientist.campaign import single
from kernel_scientist.report import summaries
from tasks.evaluation import TASKS


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
    return summaries.evaluation_summary(
        *single.evaluate(file, overrides, against, params_file, TASKS, work_pool.connect)
    )
