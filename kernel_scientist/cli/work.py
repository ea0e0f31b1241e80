"""Commands that run flows: optimize, suite, evaluate, validate."""

import json
import os
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from kernel_scientist.cli import progress
from kernel_scientist.cli.common import (
    JSON,
    METRICS,
    UNDECIDED,
    ParamOptions,
    not_empty,
    show,
    text_option,
    with_params,
    write_json,
    written,
)
from kernel_scientist.records.errors import NO_REPLY, SetupError

PROBLEM = text_option("--problem", "NAME", "The problem; default: that of params.yaml.")
TARGET = text_option("--target", "NAME", "auto, cpu, cuda, rocm, model:mi300x, pool:NAME, kernelbot.")
EXIT_CODES = {"ok": 0, "compiled": UNDECIDED, "infrastructure": UNDECIDED}
"""By verdict; 1 for others."""
VERBOSE = click.option("--verbose", is_flag=True, help="Also print clocks, sandbox, environment, compile report.")


@click.command()
@with_params
@click.option(
    "--resume", is_flag=True, help="Resume the latest campaign of this problem and target; --set applies to it."
)
@text_option("--campaign", "ID", "Resume this campaign.")
@click.option("--dry-run", is_flag=True, help="Print the plan only; with --resume, what is left.")
@click.option(
    "--metrics",
    callback=written(),
    metavar="FILE",
    help="Also write the result to FILE, and curve.csv and champion/ next to it.",
)
@click.option("--quiet", is_flag=True, help="Print the result only.")
@JSON
def optimize(
    call: ParamOptions,
    resume: bool,
    campaign: str | None,
    dry_run: bool,
    metrics: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run one campaign: evolve a kernel.

    Exit code: 0 there is a champion, 1 no kernel is correct or no model ever replied, 2 the call or the set-up is
    wrong, 3 kernels were compiled, and nothing here executes them.

    Example: kernel-scientist optimize --set problem=rmsnorm --set search.generations=10
    """
    from kernel_scientist.campaign import disk_space, outlook, preflight
    from kernel_scientist.report import tables
    from kernel_scientist.workers import prepared

    params = call.params()
    if dry_run:
        show(outlook.plan(params, campaign or resume), as_json)
        for check in (partial(disk_space.require, params), partial(preflight.models, params.llm)):
            try:
                check()
            except SetupError as error:  # a cost can be predicted without room on the disk, and without a key
                click.echo(f"warning: {error}", err=True)
        return
    outlook.require(params, campaign or resume)
    with progress.shown(steps=False, quiet=quiet), prepared.started_ahead(params, *preflight.resolve(params)):
        summary = _flow("flows.optimize:optimize", call, resume=campaign or resume)
    curve = summary.pop("curve")
    write_json(metrics, summary)
    if metrics:
        _write_curve(Path(metrics).with_name("curve.csv"), curve)
        if summary["source"]:
            shutil.copytree(Path(summary["source"]).parent, Path(metrics).with_name("champion"), dirs_exist_ok=True)
    show(summary, as_json, tables.campaign(summary))
    if NO_REPLY in summary["stopped"] and not summary.get("tokens", 1):  # a summary of an earlier version has none
        sys.exit(1)
    sys.exit(0 if summary["champion"] else EXIT_CODES.get(summary["verdict"], 1))


@click.command()
@click.argument("paths", nargs=-1, required=True, help="Files of problems, or folders that contain them.")
@click.option("--name", required=True, callback=not_empty, help="Name of the suite; a name used before continues it.")
@click.option("--level", type=int, metavar="N", help="Only problems in folders named level<N> (KernelBench).")
@click.option(
    "--jobs",
    default=1,
    type=click.IntRange(1),
    show_default=True,
    help="Campaigns at the same time, where no CPU is timed.",
)
@with_params
@METRICS
@JSON
def suite(
    call: ParamOptions,
    paths: tuple[str, ...],
    name: str,
    level: int | None,
    jobs: int,
    metrics: str | None,
    as_json: bool,
) -> None:
    """Run a campaign for each of many problems; report fast_p.

    Example: kernel-scientist suite KernelBench --level 1 --name first --set search.generations=2
    """
    from kernel_scientist.campaign.suite import Suite
    from kernel_scientist.records import environment
    from kernel_scientist.report import tables
    from kernel_scientist.tracking.access import require_usable

    params = call.params()
    Suite.of(name, paths, level).require_quiet(params, jobs)
    require_usable(environment.tracking_uri(params.tracking.uri))
    with progress.shown(steps=False):
        summary = _flow("flows.suite:run", call, name=name, paths=list(paths), level=level, jobs=jobs)
    write_json(metrics, summary)
    show(summary, as_json, tables.suite(summary))
    sys.exit(0 if any(row["correct"] for row in summary["rows"]) else 1)


@click.command()
@click.argument("file", callback=not_empty, help="The kernel's file.")
@PROBLEM
@TARGET
@text_option("--against", "FILE", "Another kernel to compare with; default: the reference.")
@VERBOSE
@with_params
@JSON
def evaluate(verbose: bool, as_json: bool, **arguments: Any) -> None:
    """Compile, check and time one kernel file.

    Exit code: 0 the kernel is correct, 1 it is not (see its verdict), 2 the call or the set-up is wrong, 3 it was
    compiled, not executed, or the evaluator could not decide.

    Example: kernel-scientist evaluate problems/rmsnorm/seeds/cpp_blocked.py --problem rmsnorm
    """
    summary = _judge("evaluate", **arguments)
    from kernel_scientist.report import tables

    show(summary, as_json, tables.evaluation(summary, verbose))
    sys.exit(EXIT_CODES.get(summary["verdict"], 1))


@click.command()
@click.argument("file", callback=not_empty, required=False, help="The kernel's file.")
@PROBLEM
@TARGET
@text_option("--against", "FILE", "The kernel it must beat; default: the problem's last seed.")
@click.option(
    "--recorded",
    is_flag=True,
    help="Use the confirmation that `optimize` wrote beside FILE, if kernel, baseline, opponents, problem, evaluator, "
    "settings and machine are the same.",
)
@VERBOSE
@with_params
@JSON
@METRICS
def validate(metrics: str | None, verbose: bool, as_json: bool, **arguments: Any) -> None:
    """Confirm a kernel in fresh processes, on new seeds and held-out cases; by default the standing champion.

    Exit code: 0 it is confirmed, or correct and there is nothing that it must be faster than, 1 it is not, 2 the call
    or the set-up is wrong, 3 it was compiled, not executed, or the evaluator could not decide.

    Example: kernel-scientist validate champions/rmsnorm/cpp-cpu/kernel.py --problem rmsnorm
    """
    summary = _judge("validate", **arguments)
    from kernel_scientist.records.evaluation import NOT_CONFIRMED
    from kernel_scientist.report import tables

    write_json(metrics, summary)
    show(summary, as_json, tables.validation(summary, verbose))
    sys.exit(EXIT_CODES.get(summary["verdict"], 1) or 1 if summary["status"] == NOT_CONFIRMED else 0)


def _judge(
    what: str,
    call: ParamOptions,
    file: str | None,
    problem: str | None,
    target: str | None,
    against: str | None,
    recorded: bool = False,
) -> dict[str, Any]:
    """Evaluate or validate a kernel file: in this process, or as a flow on the Prefect server that is configured.

    `recorded`: a confirmation that is known already will do.
    """
    with progress.shown():
        from kernel_scientist.campaign import champions, preflight, single
        from kernel_scientist.campaign import recorded as known

        named = {name: value for name, value in (("problem", problem), ("target", target)) if value is not None}
        params = call.params(**named)
        file = file or str(champions.file(params))
        preflight.kernels(params, [Path(name) for name in (file, against) if name])
        if recorded and not against and (found := known.confirmation(Path(file), params)):
            return found
        overrides = (*call.overrides, *(f"{key}={json.dumps(value)}" for key, value in named.items()))
        if os.environ.get("PREFECT_API_URL"):
            return _flow(f"flows.{what}:{what}", ParamOptions(overrides, call.params_file), file=file, against=against)
        from kernel_scientist.report import summaries

        if what == "evaluate":
            return summaries.evaluation_summary(*single.evaluate(file, params, against))
        return summaries.validation_summary(*single.validate(file, params, against))


def _flow(entry_point: str, call: ParamOptions, **arguments: Any) -> Any:
    from pkgutil import resolve_name

    from kernel_scientist.campaign import preflight

    preflight.prefect()
    module = entry_point.partition(":")[0]
    with resolve_name("flows.server:serving")((module, "mlflow.store.tracking.sqlalchemy_store")):
        flow = resolve_name(entry_point)
        return flow(overrides=list(call.overrides), params_file=call.params_file, **arguments)


def _write_curve(path: Path, curve: list[dict[str, Any]]) -> None:
    from kernel_scientist.report import output

    columns = list(curve[0]) if curve else ["index"]
    output.write(path, output.csv_text(columns, (row.values() for row in curve)))
