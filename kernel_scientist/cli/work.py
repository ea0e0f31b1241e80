"""Commands about a campaign or one kernel: optimize, suite, evaluate, profile, validate."""

import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernel_scientist.cli import progress, terminal
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

if TYPE_CHECKING:
    from kernel_scientist.records.campaign_result import CurvePoint
    from kernel_scientist.records.params import Params
    from kernel_scientist.records.results import ValidationResult

PROBLEM = text_option("--problem", "NAME", "The problem; default: that of params.yaml.")
TARGET = text_option("--target", "NAME", "auto, cpu, cuda, rocm, model:mi300x, pool:NAME, kernelbot.")
EXIT_CODES = {"ok": 0, "compiled": UNDECIDED, "infrastructure": UNDECIDED}
"""By verdict; 1 for others."""
VERBOSE = click.option("--verbose", is_flag=True, help="Also print clocks, sandbox, environment, compile report.")


@click.command()
@with_params
@click.option(
    "--resume",
    is_flag=True,
    help="Resume the latest campaign of this problem, language and target; --set applies to it.",
)
@text_option("--campaign", "ID", "Resume this campaign.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the plan, or with --resume what is left, and what a start would refuse (exit code 2).",
)
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
    wrong, 3 kernels were compiled, and nothing here executes them, or the evaluator could not decide about the first.

    Example: kernel-scientist optimize --set problem=rmsnorm --set search.generations=10
    """
    from kernel_scientist import api
    from kernel_scientist.campaign import outlook, preflight, stopping
    from kernel_scientist.report import tables

    if dry_run:
        params = call.params()
        plan = outlook.plan(params, campaign or resume)
        show(plan, as_json)  # a cost can be predicted without a store, and without a key
        checks = [*preflight.checks(params, preflight.resolve(params)[0]), preflight.prefect]
        if plan.get("kernels_left") != 0:  # else no model is called
            checks.append(partial(_models, params))
        sys.exit(2 if _failed(checks) else 0)
    terminal.outlast()
    with stopping.interruptible(), progress.shown(steps=False, quiet=quiet):
        result = api.optimize(resume=campaign or resume, **call.settings)
    shown = result.model_dump(mode="json", exclude={"curve"})
    write_json(metrics, shown)
    if metrics:
        _write_curve(Path(metrics).with_name("curve.csv"), result.curve)
        if result.source:
            shutil.copytree(Path(result.source).parent, Path(metrics).with_name("champion"), dirs_exist_ok=True)
    show(shown, as_json, tables.campaign(result))
    if NO_REPLY in result.stopped and not result.tokens:
        sys.exit(1)
    sys.exit(0 if result.champion else EXIT_CODES.get(result.verdict or "", 1))


def _models(params: "Params") -> None:
    """Check the models; print what is wrong with some that others replace."""
    from kernel_scientist.campaign import preflight

    for warning in preflight.models(params):
        click.echo(f"warning: {warning}", err=True)


def _failed(checks: Iterable[Callable[[], None]]) -> int:
    """Print why checks fail; return how many do."""
    reasons = list[str]()
    for check in checks:
        try:
            check()
        except SetupError as error:
            reasons.append(str(error))
    for reason in reasons:
        click.echo(f"error: {reason}", err=True)
    return len(reasons)


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
    from kernel_scientist import api
    from kernel_scientist.report import tables

    terminal.outlast()
    with progress.shown(steps=False):
        result = api.suite(name, paths, level, jobs, **call.settings)
    summary = result.model_dump(mode="json")
    write_json(metrics, summary)
    show(summary, as_json, tables.suite(result))
    sys.exit(0 if any(row.correct for row in result.rows) else 1)


@click.command()
@click.argument("file", callback=not_empty, help="The kernel's file.")
@PROBLEM
@TARGET
@text_option("--against", "FILE", "Another kernel to compare with; default: the reference.")
@VERBOSE
@with_params
@JSON
def evaluate(call: ParamOptions, verbose: bool, as_json: bool, **arguments: Any) -> None:
    """Compile, check and time one kernel file.

    Exit code: 0 the kernel is correct, 1 it is not (see its verdict), 2 the call or the set-up is wrong, 3 it was
    compiled, not executed, or the evaluator could not decide.

    Example: kernel-scientist evaluate problems/rmsnorm/seeds/cpp_blocked.py --problem rmsnorm
    """
    with progress.shown():
        from kernel_scientist import api

        result = api.evaluate(**arguments, **call.settings)
    from kernel_scientist.report import tables

    show(result, as_json, tables.evaluation(result, verbose))
    sys.exit(EXIT_CODES.get(result.verdict, 1))


@click.command()
@click.argument("file", callback=not_empty, help="The kernel's file.")
@PROBLEM
@TARGET
@text_option("--case", "NAME", "The timed case; default: the one that moves most bytes.")
@VERBOSE
@with_params
@JSON
def profile(call: ParamOptions, case: str | None, verbose: bool, as_json: bool, **arguments: Any) -> None:
    """Check one kernel file and show where its calls' time goes: by source line on a CPU, by counters on a GPU.

    On a CPU it needs Linux' perf. Nothing is timed. Exit code: as `evaluate`.

    Example: kernel-scientist profile problems/rmsnorm/seeds/cpp_blocked.py --problem rmsnorm
    """
    with progress.shown():
        from kernel_scientist import api

        result = api.profile_kernel(case=case or "", **arguments, **call.settings)
    from kernel_scientist.report import profiled

    show(result, as_json, profiled.profile(result, verbose))
    sys.exit(EXIT_CODES.get(result.verdict, 1))


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
def validate(call: ParamOptions, metrics: str | None, verbose: bool, as_json: bool, **arguments: Any) -> None:
    """Confirm a kernel in fresh processes, on new seeds and held-out cases; by default the standing champion.

    Exit code: 0 it is confirmed, or correct and there is nothing that it must be faster than, 1 it is not, 2 the call
    or the set-up is wrong, 3 it was compiled, not executed, its time is only predicted on this target, or the evaluator
    could not decide.

    Example: kernel-scientist validate champions/rmsnorm/cpp-cpu/kernel.py --problem rmsnorm
    """
    with progress.shown():
        from kernel_scientist import api

        result = api.validate(**arguments, **call.settings)
    from kernel_scientist.report import tables

    write_json(metrics, result)
    show(result, as_json, tables.validation(result, verbose))
    sys.exit(validation_code(result))


def validation_code(result: "ValidationResult") -> int:
    """Return the exit code of `validate`; a right kernel whose time is only predicted is undecided."""
    from kernel_scientist.records.evaluation import NOT_CONFIRMED

    if result.status != NOT_CONFIRMED:
        return 0
    return UNDECIDED if result.is_only_predicted else EXIT_CODES.get(result.verdict, 1) or 1


def _write_curve(path: Path, curve: Sequence["CurvePoint"]) -> None:
    from kernel_scientist.report import output

    rows = list(map(dict, curve))
    output.write(path, output.csv_text(list(rows[0]) if rows else ["index"], (row.values() for row in rows)))
