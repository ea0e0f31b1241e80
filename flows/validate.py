"""Confirm a kernel in fresh processes, on held-out cases and new seeds."""

from typing import Any

from prefect import flow

from flows import work_pool
from kernel_scientist.campaign import single
from kernel_scientist.report import summaries
from tasks.evaluation import TASKS


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
    return summaries.validation_summary(
        *single.validate(file, overrides, against, params_file, TASKS, work_pool.connect)
    )
