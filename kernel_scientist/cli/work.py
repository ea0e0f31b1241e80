"""Commands that run flows: optimize, evaluate, validate."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kernel_scientist.cli.common import INFRASTRUCTURE, JSON, METRICS, PARAMS, SET, load, not_empty, show, write_json


@click.command()
@SET
@PARAMS
@click.option("--resume", is_flag=True, help="Resume the latest campaign of this problem and target.")
@click.option("--campaign", metavar="ID", help="Resume this campaign.")
@click.option("--dry-run", is_flag=True, help="Print the plan only.")
@click.option("--metrics", "metrics", metavar="FILE", help="Also write the result to FILE, and curve.csv next to it.")
@JSON
def optimize(
    overrides: tuple[str, ...],
    params_file: str | None,
    resume: bool,
    campaign: str | None,
    dry_run: bool,
    metrics: str | None,
    as_json: bool,
) -> None:
    """Run one campaign: evolve a kernel.

    Example: kernel-scientist optimize --set problem=rmsnorm --set search.generations=10
    """
    from kernel_scientist.campaign import preflight

    params = load(overrides, params_file)
    if dry_run:
        show(preflight.plan(params), as_json)
        return
    preflight.campaign(params)
    summary = _flow(
        "flows.optimize.optimize", overrides=list(overrides), resume=campaign or resume, params_file=params_file
    )
    curve = summary.pop("curve")
    if metrics:
        _write_metrics(Path(metrics), summary, curve)
    _show(summary, as_json, "show_campaign")
    sys.exit(0 if summary["champion"] else 1)


def _kernel_command(against: str) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator for a command about one kernel file, with the options that such commands share."""
    named = {"problem": "The problem; default: that of params.yaml.", "target": "auto, cpu, cuda, rocm, model:mi300x."}
    options = [click.option(f"--{n}", callback=not_empty, metavar="NAME", help=text) for n, text in named.items()]
    options += [click.option("--against", callback=not_empty, metavar="FILE", help=against)]
    options += [
        click.option("--verbose", is_flag=True, help="Also print clocks, sandbox, environment, compile report.")
    ]

    def decorate(function: Callable[..., None]) -> click.Command:
        for option in (JSON, PARAMS, SET, *reversed(options), click.argument("file", callback=not_empty)):
            function = option(function)
        return click.command()(function)

    return decorate


@_kernel_command(against="Another kernel to compare with; default: the reference.")
def evaluate(verbose: bool, as_json: bool, **call: Any) -> None:
    """Compile, check and time one kernel file.

    Exit code: 0 the kernel is correct, 1 it is not (see its verdict), 2 the call or the set-up is wrong, 3 the
    evaluator could not decide.

    Example: kernel-scientist evaluate problems/rmsnorm/seeds/cpp_blocked.py --problem rmsnorm
    """
    summary = _flow("flows.evaluate.evaluate", **_checked(**call))
    _show(summary, as_json, "show_evaluation", verbose)
    sys.exit({"ok": 0, "infrastructure": INFRASTRUCTURE}.get(summary["verdict"], 1))


@_kernel_command(against="The kernel it must beat; default: the best seed.")
@METRICS
def validate(metrics: str | None, verbose: bool, as_json: bool, **call: Any) -> None:
    """Confirm a kernel in fresh processes, on new seeds and held-out cases.

    Example: kernel-scientist validate champions/rmsnorm/kernel.py --problem rmsnorm
    """
    summary = _flow("flows.validate.validate", **_checked(**call))
    if metrics:
        write_json(Path(metrics), summary)
    _show(summary, as_json, "show_validation", verbose)
    sys.exit(0 if summary["confirmed"] else 1)


def _checked(
    file: str,
    problem: str | None,
    target: str | None,
    against: str | None,
    overrides: tuple[str, ...],
    params_file: str | None,
) -> dict[str, Any]:
    """Check a call about a kernel file; return the arguments of its flow."""
    from kernel_scientist.campaign import preflight

    params = load(overrides, params_file, problem=problem, target=target)
    preflight.kernels(params, [Path(file), *([Path(against)] if against else [])])
    named = {"problem": problem, "target": target}
    extra = [f"{key}={json.dumps(value)}" for key, value in named.items() if value is not None]
    return {"file": file, "overrides": [*overrides, *extra], "against": against, "params_file": params_file}


def _show(summary: dict[str, Any], as_json: bool, printer: str, *options: bool) -> None:
    """Print a summary as JSON or by a function of `report.evaluation_text`."""
    if as_json:
        show(summary, True)
        return
    from kernel_scientist.report import evaluation_text

    getattr(evaluation_text, printer)(summary, *options)


def _flow(entry_point: str, **arguments: Any) -> Any:
    """Run a flow by its entry point."""
    from pkgutil import resolve_name

    from kernel_scientist.campaign import preflight

    preflight.prefect()
    module, _, name = entry_point.rpartition(".")
    with resolve_name("flows.server:serving")():
        return resolve_name(f"{module}:{name}")(**arguments)


def _write_metrics(path: Path, summary: dict[str, Any], curve: list[dict[str, Any]]) -> None:
    import csv

    write_json(path, summary)
    with path.with_name("curve.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(curve[0]) if curve else ["index"])
        writer.writeheader()
        writer.writerows(curve)
