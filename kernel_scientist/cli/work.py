"""Commands that run flows: optimize, evaluate, validate."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from kernel_scientist.cli.common import INFRASTRUCTURE, JSON, PARAMS, SET, load, not_empty, show, write_json


@click.command()
@SET
@PARAMS
@click.option("--resume", is_flag=True, help="Go on with the latest campaign of this problem and target.")
@click.option("--campaign", metavar="ID", help="Go on with this campaign.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; try nothing.")
@click.option("--metrics", "metrics", metavar="FILE", help="Also write the result to FILE, and its curve beside it.")
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
    found = _flow(
        "flows.optimize.optimize", overrides=list(overrides), resume=campaign or resume, params_file=params_file
    )
    curve = found.pop("curve")
    if metrics:
        _write_metrics(Path(metrics), found, curve)
    if not as_json and found["predicted"]:
        found["predicted"] = _in_a_line(found["predicted"])
    show(found, as_json, brief=bool(metrics))
    sys.exit(0 if found["champion"] else 1)


@click.command()
@click.argument("file", callback=not_empty)
@click.option("--problem", callback=not_empty, metavar="NAME", help="The problem; default: that of params.yaml.")
@click.option("--target", callback=not_empty, metavar="NAME", help="auto, cpu, cuda, rocm or model:mi300x.")
@click.option(
    "--against", callback=not_empty, metavar="FILE", help="Another kernel to compare with; default: the reference."
)
@SET
@PARAMS
@JSON
def evaluate(
    file: str,
    problem: str | None,
    target: str | None,
    against: str | None,
    overrides: tuple[str, ...],
    params_file: str | None,
    as_json: bool,
) -> None:
    """Put one kernel file through the whole judge: compile, check, time.

    Exit code: 0 the kernel is right, 1 it is not (its verdict says how), 2 the call or the set-up is wrong, 3 the
    laboratory could not decide.

    Example: kernel-scientist evaluate problems/rmsnorm/seeds/cpp_blocked.py --problem rmsnorm
    """
    params = load(overrides, params_file, problem=problem, target=target)
    _preflight(params, kernels=[file, *([against] if against else [])])
    found = _flow(
        "flows.evaluate.evaluate",
        file=file,
        overrides=_named(overrides, problem, target),
        against=against,
        params_file=params_file,
    )
    _show(found, as_json)
    sys.exit({"ok": 0, "infrastructure": INFRASTRUCTURE}.get(found["verdict"], 1))


@click.command()
@click.argument("file", callback=not_empty)
@click.option("--problem", callback=not_empty, metavar="NAME", help="The problem; default: that of params.yaml.")
@click.option("--target", callback=not_empty, metavar="NAME", help="auto, cpu, cuda, rocm or model:mi300x.")
@click.option("--against", callback=not_empty, metavar="FILE", help="The kernel it must beat; default: the best seed.")
@click.option("--metrics", "metrics", metavar="FILE", help="Also write the result to FILE.")
@SET
@PARAMS
@JSON
def validate(
    file: str,
    problem: str | None,
    target: str | None,
    against: str | None,
    metrics: str | None,
    overrides: tuple[str, ...],
    params_file: str | None,
    as_json: bool,
) -> None:
    """Confirm a kernel in fresh processes, on new seeds and held-out cases.

    Example: kernel-scientist validate champions/rmsnorm/kernel.py --problem rmsnorm
    """
    params = load(overrides, params_file, problem=problem, target=target)
    _preflight(params, kernels=[file, *([against] if against else [])])
    found = _flow(
        "flows.validate.validate",
        file=file,
        overrides=_named(overrides, problem, target),
        against=against,
        params_file=params_file,
    )
    if metrics:
        write_json(Path(metrics), found)
    show(found, as_json, brief=bool(metrics))
    sys.exit(0 if found["confirmed"] else 1)


def _show(found: dict[str, Any], as_json: bool) -> None:
    """Print an evaluation; what is told of a GPU's code, and what was counted there, in lines of their own."""
    from kernel_scientist.records.evaluation import Counters
    from kernel_scientist.report import resources

    on_gpu = bool(found["compile"] and found["compile"]["objects"]) and not as_json
    kernels = found["counters"]["kernels"] if found["counters"] else []
    apart = (("predicted", "compile") if on_gpu else ()) + (() if as_json else ("counters",))
    show({k: v for k, v in found.items() if k not in apart}, as_json)
    for line in resources.evaluation(found) if on_gpu else ():
        click.echo(line)
    for line in resources.counter_lines([Counters.model_validate(k) for k in kernels]) if not as_json else ():
        click.echo(line)


def _in_a_line(predicted: dict[str, Any]) -> str:
    share = f"{100 * predicted['roofline_fraction']:.1f} % of the roofline"
    return f"{predicted['geomean_us']:.1f} us geomean, {share} ({predicted['by']})"


def _named(overrides: tuple[str, ...], problem: str | None, target: str | None) -> list[str]:
    extra = {"problem": problem, "target": target}
    return [*overrides, *(f"{k}={json.dumps(v)}" for k, v in extra.items() if v is not None)]


def _preflight(params: Any, kernels: list[str]) -> None:
    from kernel_scientist.campaign import preflight

    preflight.kernels(params, [Path(k) for k in kernels])


def _flow(entry_point: str, **arguments: Any) -> Any:
    """Run a flow by its entry point."""
    from pkgutil import resolve_name

    from kernel_scientist.campaign import preflight

    preflight.prefect()
    module, _, name = entry_point.rpartition(".")
    with resolve_name("flows.server:serving")():
        return resolve_name(f"{module}:{name}")(**arguments)


def _write_metrics(path: Path, found: dict[str, Any], curve: list[dict[str, Any]]) -> None:
    import csv

    write_json(path, found)
    with path.with_name("curve.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(curve[0]) if curve else ["index"])
        writer.writeheader()
        writer.writerows(curve)
