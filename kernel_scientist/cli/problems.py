"""Commands about problems: list, description, frozen cases, times of the reference and the seeds."""

from pathlib import Path

import click

from kernel_scientist.cli.common import JSON, METRICS, PARAMS, SET, load, show, write_json
from kernel_scientist.records import environment


@click.group()
def problems() -> None:
    """List and describe the problems.

    Example: kernel-scientist problems list
    """


@problems.command("list")
@JSON
def problems_list(as_json: bool) -> None:
    """List the problems."""
    from kernel_scientist import problems as catalogue

    rows = [{"problem": n, "about": catalogue.find(n).description.strip().splitlines()[0]} for n in catalogue.names()]
    if as_json:
        show(rows, True)
    else:
        for row in rows:
            click.echo(f"{row['problem']:24} {row['about']}")


@problems.command("show")
@click.argument("name")
@JSON
def problems_show(name: str, as_json: bool) -> None:
    """Describe a problem: text, cases, roofline floors.

    Example: kernel-scientist problems show fp8-blockwise-gemm
    """
    from kernel_scientist import problems as catalogue
    from kernel_scientist.report.problems import describe

    show(describe(catalogue.find(name)), as_json)


@click.command()
@click.option("--out", "out", default="data/cases", metavar="FOLDER", help="Where to write them.")
@SET
@PARAMS
def cases(out: str, overrides: tuple[str, ...], params_file: str | None) -> None:
    """Freeze the checking cases' inputs and expected outputs (DVC stage).

    Example: kernel-scientist cases --out data/cases
    """
    from kernel_scientist import problems as catalogue
    from kernel_scientist.hardware import targets
    from kernel_scientist.problems import frozen

    params = load(overrides, params_file)
    problem = catalogue.find(params.problem, targets.resolve(params.target, params.language).device)
    paths = frozen.freeze(problem, params.profile, environment.root() / out)
    click.echo(f"froze {len(paths)} cases of {problem.name} in {out}")


@click.command()
@click.option("--cases", "cases_folder", default="data/cases", metavar="FOLDER", help="The frozen cases.")
@METRICS
@SET
@PARAMS
@JSON
def baseline(
    cases_folder: str, metrics: str | None, overrides: tuple[str, ...], params_file: str | None, as_json: bool
) -> None:
    """Time the reference and the seeds (DVC stage), after verifying the reference against the frozen outputs.

    Example: kernel-scientist baseline --metrics reports/baseline.json
    """
    from kernel_scientist.report import problems as reports

    result = reports.baseline(load(overrides, params_file), environment.root() / cases_folder)
    if metrics:
        write_json(Path(metrics), result)
    show(result, as_json)
