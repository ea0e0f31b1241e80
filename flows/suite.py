"""A campaign for each problem of a suite, several side by side."""

from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.settings import PREFECT_API_URL
from prefect.task_runners import ThreadPoolTaskRunner

from flows.form import UNTOUCHED, Form
from kernel_scientist.campaign import campaign_process, stopping
from kernel_scientist.campaign.suite import Suite, summary
from kernel_scientist.records.params import load
from kernel_scientist.records.suite_result import SuiteResult, SuiteRow
from kernel_scientist.report import tables
from kernel_scientist.report.output import Table
from kernel_scientist.tracking import access


@task(task_run_name="campaign {place.stem}")
def campaign(suite: Suite, place: Path, overrides: list[str], params_file: str | None) -> SuiteRow:
    """Run or resume one problem's campaign in a process of its own, on this flow's Prefect server."""
    return suite.run(place, overrides, params_file, PREFECT_API_URL.value())


@flow(name="suite", flow_run_name="suite {name}", task_runner=ThreadPoolTaskRunner(max_workers=1))  # pyright: ignore
def suite(
    name: str,
    paths: list[str],
    level: int | None = None,
    params: Form = UNTOUCHED,
    overrides: list[str] | None = None,
    params_file: str | None = None,
) -> SuiteResult:
    """Run a campaign for each of many problems.

    Args:
        name: Name of the suite. A run with the name of an earlier one goes on with the problems that are left.
        paths: Task folders, KernelBench files and folders of them.
        level: Only problems in folders named level<N> (KernelBench).
        params: Parameters that take precedence over params.yaml.
        overrides: The same as `key.sub=value`.
        params_file: Another params.yaml.
    """
    given = params.overrides(overrides)
    settings = load(params_file, given)
    found = Suite.of(name, paths, level)
    found.begin()
    stopping.began(campaign_process.GOING_ON)
    access.suite_store(settings)  # made before campaigns share it
    with stopping.stoppable(lambda: None):  # their processes are asked to end (`campaign_process.called`)
        runs = [campaign.submit(found, place, given, params_file) for place in found.places]
        rows = [run.result() for run in runs]
    result = summary(name, rows)
    result = result.model_copy(update={"mlflow": access.log_suite(settings, result)})
    (table,) = (part for part in tables.suite(result) if isinstance(part, Table))
    create_table_artifact(table.cells, key="suite", description=table.title)
    return result


def run(jobs: int, **arguments: Any) -> SuiteResult:
    """Run the flow with so many campaigns at the same time."""
    return suite.with_options(task_runner=ThreadPoolTaskRunner(max_workers=max(1, jobs)))(**arguments)  # pyright: ignore
