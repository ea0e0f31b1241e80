"""Confirm a kernel, or all standing champions, in fresh processes, on held-out cases and new seeds."""

from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_table_artifact
from prefect.logging import get_run_logger
from prefect.runtime import flow_run

from flows import events, work_pool
from flows.form import UNTOUCHED, Form, subject
from kernel_scientist.campaign import champions, single
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import NOT_CONFIRMED
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.params import Params, load
from kernel_scientist.records.results import ValidationResult
from tasks.chain import Chain


def _run_name() -> str:
    parameters = flow_run.get_parameters()
    file = parameters.get("file")
    return f"confirm {Path(file).name} for {subject(parameters)}"[:120] if file else "confirm all champions again"


@flow(name="validate", flow_run_name=_run_name)
def validate(
    file: str | None = None,
    params: Form = UNTOUCHED,
    overrides: list[str] | None = None,
    against: str | None = None,
    params_file: str | None = None,
) -> ValidationResult | dict[str, Any]:
    """Confirm one kernel file against the reference and the seeds; return the result of `kernel-scientist validate`.

    Args:
        file: The kernel. None: every standing champion in champions/; a change of machine, driver or compiler since its
            promotion, and a champion that is not confirmed any more, are sent as events.
        params: Parameters that take precedence over params.yaml.
        overrides: The same as `key.sub=value`.
        against: The file of the kernel that it must beat. None: the last of the problem's other seeds.
        params_file: Another params.yaml.
    """
    given = params.overrides(overrides)
    if file is not None:
        return _confirmed(file, load(params_file, given), against)
    rows = [_again(champion, given, params_file) for champion in champions.promoted()]
    create_table_artifact(rows, key="champions", description="the standing champions, confirmed again")
    return {"champions": rows}


def _confirmed(file: str, settings: Params, against: str | None) -> ValidationResult:
    return single.validate(file, settings, against, Chain(), work_pool.connect)


def _again(champion: champions.Promoted, given: list[str], params_file: str | None) -> dict[str, Any]:
    """Confirm a standing champion again; return its row. One that cannot be evaluated here is a row, too."""
    row, own = champion.params, [f"{key}={value}" for key, value in champion.params.items()]
    try:
        found = _confirmed(str(champion.source), load(params_file, [*given, *own]), None)
    except SetupError as error:
        return {**row, "confirmed": None, "why": str(error), "speedup": "", "drift": ""}
    drift, why = champion.drift(found.environment), found.why
    if drift:
        events.emit(events.DRIFT, **row, changes={key: {"was": was, "is": now} for key, (was, now) in drift.items()})
    undecided = found.verdict is Verdict.INFRASTRUCTURE or found.is_only_predicted
    if found.status == NOT_CONFIRMED and not undecided:
        events.emit(events.LOST, **row, why=why)
        get_run_logger().warning("champion of %(problem)s in %(language)s on %(target)s is not confirmed", row)
    shown = "; ".join(f"{key}: {was} -> {now}" for key, (was, now) in drift.items())
    return {
        **row,
        "confirmed": found.status != NOT_CONFIRMED,
        "why": why,
        "speedup": str(found.speedup or ""),
        "drift": shown,
    }
