"""The command line. Exit codes: 0 done, 1 the work says no, 2 the call or set-up is wrong, 3 nothing could be decided.

Nothing heavy is imported before a command runs. Flows stand a floor above this package: they are reached by their entry
points (`flows.optimize.optimize`), the same strings that deployments use.
"""

import json
import sys
from pathlib import Path
from typing import Any

import click

from kernel_scientist import __version__, environment
from kernel_scientist.errors import InfrastructureError, SetupError, StoppedError

SET = click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a parameter of params.yaml."
)
PARAMS = click.option("--params", "params_file", metavar="FILE", help="Another params.yaml.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")


BRIEF = (
    "campaign",
    "champion",
    "kernels",
    "confirmed",
    "why",
    "speedup",
    "interval",
    "verdict",
    "reason",
    "seeds",
    "stopped",
)


INFRASTRUCTURE = 3  # exit code: the laboratory could not decide


class Program(click.Group):
    """The group of commands: a mistake of the user's is one sentence and exit code 2, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command and translate what it raises."""
        environment.prepare()
        try:
            return super().invoke(ctx)
        except SetupError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2)
        except InfrastructureError as error:
            click.echo(f"error: {error}; nothing was decided about the kernel, try again", err=True)
            ctx.exit(INFRASTRUCTURE)
        except (KeyboardInterrupt, StoppedError):
            click.echo("stopped; what was logged is kept: go on with `kernel-scientist optimize --resume`", err=True)
            ctx.exit(130)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__)
def main() -> None:
    """Improve GPU kernels by the scientific method: hypothesis, implementation, measurement, record.

    Example: kernel-scientist optimize --set search.generations=10
    """


@main.command()
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
    from kernel_scientist import preflight

    params = _load(overrides, params_file)
    if dry_run:
        _print(preflight.plan(params), as_json)
        return
    preflight.campaign(params)
    found = _flow(
        "flows.optimize.optimize", overrides=list(overrides), resume=campaign or resume, params_file=params_file
    )
    curve = found.pop("curve")
    if metrics:
        _write_metrics(Path(metrics), found, curve)
    _print(found, as_json, brief=bool(metrics))
    sys.exit(0 if found["champion"] else 1)


@main.command()
@click.argument("file")
@click.option("--problem", metavar="NAME", help="The problem; default: that of params.yaml.")
@click.option("--target", metavar="NAME", help="auto, cpu, cuda or rocm.")
@click.option("--against", metavar="FILE", help="Another kernel to compare with; default: the reference.")
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
    overrides = _named(overrides, problem, target)
    _preflight(_load(overrides, params_file), kernels=[file, *([against] if against else [])])
    found = _flow(
        "flows.evaluate.evaluate", file=file, overrides=list(overrides), against=against, params_file=params_file
    )
    _print(found, as_json)
    sys.exit({"ok": 0, "infrastructure": INFRASTRUCTURE}.get(found["verdict"], 1))


@main.command()
@click.argument("file")
@click.option("--problem", metavar="NAME", help="The problem; default: that of params.yaml.")
@click.option("--target", metavar="NAME", help="auto, cpu, cuda or rocm.")
@click.option("--against", metavar="FILE", help="The kernel it must beat; default: the best seed.")
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
    overrides = _named(overrides, problem, target)
    _preflight(_load(overrides, params_file), kernels=[file, *([against] if against else [])])
    found = _flow(
        "flows.validate.validate", file=file, overrides=list(overrides), against=against, params_file=params_file
    )
    if metrics:
        _write_json(Path(metrics), found)
    _print(found, as_json, brief=bool(metrics))
    sys.exit(0 if found["confirmed"] else 1)


@main.group()
def problems() -> None:
    """What can be worked on.

    Example: kernel-scientist problems list
    """


@problems.command("list")
@JSON
def problems_list(as_json: bool) -> None:
    """List the problems."""
    from kernel_scientist import problems as shelf

    rows = [{"problem": n, "about": shelf.find(n).description.strip().splitlines()[0]} for n in shelf.names()]
    if as_json:
        _print(rows, True)
    else:
        for row in rows:
            click.echo(f"{row['problem']:24} {row['about']}")


@problems.command("show")
@click.argument("name")
@JSON
def problems_show(name: str, as_json: bool) -> None:
    """Show a problem: text, cases and their roofline.

    Example: kernel-scientist problems show fp8-blockwise-gemm
    """
    from kernel_scientist import problems as shelf
    from kernel_scientist.report.problem import describe

    _print(describe(shelf.find(name)), as_json)


@main.command()
@click.option("--out", "out", default="data/cases", metavar="FOLDER", help="Where to write them.")
@SET
@PARAMS
def cases(out: str, overrides: tuple[str, ...], params_file: str | None) -> None:
    """Freeze the checking cases' inputs and expected outputs (DVC stage).

    Example: kernel-scientist cases --out data/cases
    """
    from kernel_scientist import frozen, targets
    from kernel_scientist import problems as shelf

    params = _load(overrides, params_file)
    problem = shelf.find(params.problem, targets.resolve(params.target, params.language).device)
    paths = frozen.freeze(problem, params.profile, environment.root() / out)
    click.echo(f"froze {len(paths)} cases of {problem.name} in {out}")


@main.command()
@click.option("--cases", "cases_folder", default="data/cases", metavar="FOLDER", help="The frozen cases.")
@click.option("--metrics", "metrics", metavar="FILE", help="Also write the result to FILE.")
@SET
@PARAMS
@JSON
def baseline(
    cases_folder: str, metrics: str | None, overrides: tuple[str, ...], params_file: str | None, as_json: bool
) -> None:
    """Time the reference and the seeds (DVC stage), after checking that the reference still gives the frozen outputs.

    Example: kernel-scientist baseline --metrics reports/baseline.json
    """
    from kernel_scientist.report.baseline import measure

    params = _load(overrides, params_file)
    found = measure(params, environment.root() / cases_folder)
    if metrics:
        _write_json(Path(metrics), found)
    _print(found, as_json, brief=bool(metrics))


@main.command()
@click.argument("campaign", required=False)
@click.option("--out", "out", default="reports/report.html", metavar="FILE", help="The page to write.")
@SET
@PARAMS
def report(campaign: str | None, out: str, overrides: tuple[str, ...], params_file: str | None) -> None:
    """Write the page of a campaign (the latest by default) and print its table.

    Example: kernel-scientist report --out reports/report.html
    """
    from kernel_scientist.report import page

    page.write(_load(overrides, params_file), campaign, environment.root() / out)


@main.command()
@JSON
def doctor(as_json: bool) -> None:
    """Say what this machine can do.

    Example: kernel-scientist doctor
    """
    from kernel_scientist.report.doctor import examine

    found = examine()
    if as_json:
        _print(found, True)
    else:
        for row in found:
            click.echo(f"{'ok ' if row['ok'] else 'no '} {row['what']:12} {row['detail']}")
    sys.exit(0 if all(row["ok"] or not row["needed"] for row in found) else 2)


@main.command()
@click.option("--prefect-port", default=4200, show_default=True, help="Port of the Prefect server.")
@click.option("--mlflow-port", default=5000, show_default=True, help="Port of the MLflow server.")
def ui(prefect_port: int, mlflow_port: int) -> None:
    """Serve the Prefect and the MLflow UI over this laboratory's store until Ctrl-C.

    Example: kernel-scientist ui --mlflow-port 5001
    """
    from kernel_scientist.report.ui import serve

    serve(prefect_port, mlflow_port)


def _load(overrides: tuple[str, ...], params_file: str | None) -> Any:
    from kernel_scientist.params import load

    return load(Path(params_file) if params_file else environment.root() / "params.yaml", overrides)


def _named(overrides: tuple[str, ...], problem: str | None, target: str | None) -> tuple[str, ...]:
    extra = {"problem": problem, "target": target}
    return (*overrides, *(f"{k}={v}" for k, v in extra.items() if v))


def _preflight(params: Any, kernels: list[str]) -> None:
    from kernel_scientist import preflight

    preflight.kernels(params, [Path(k) for k in kernels])


def _flow(entry_point: str, **arguments: Any) -> Any:
    """Run a flow by its entry point."""
    from pkgutil import resolve_name

    from kernel_scientist import preflight

    preflight.prefect()
    module, _, name = entry_point.rpartition(".")
    with resolve_name("flows.server:serving")():
        return resolve_name(f"{module}:{name}")(**arguments)


def _print(value: Any, as_json: bool, brief: bool = False) -> None:
    """Print a result; `brief` leaves out what was written to a file anyway."""
    if brief and not as_json:
        value = {k: v for k, v in value.items() if k in BRIEF}
    if as_json:
        click.echo(json.dumps(value, indent=1))
        return
    from kernel_scientist.report.terminal import show

    show(value)


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def _write_metrics(path: Path, found: dict[str, Any], curve: list[dict[str, Any]]) -> None:
    import csv

    _write_json(path, found)
    with path.with_name("curve.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(curve[0]) if curve else ["index"])
        writer.writeheader()
        writer.writerows(curve)
