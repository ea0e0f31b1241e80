"""Commands about problems: list, description, frozen cases, times of the reference and the seeds."""

import click

from kernel_scientist.cli.common import JSON, METRICS, Call, show, with_params, write_json
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError


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
    show(rows, as_json, (f"{row['problem']:24} {row['about']}" for row in rows))


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
@with_params
def cases(out: str, call: Call) -> None:
    """Freeze the checking cases' inputs and expected outputs (DVC stage).

    Example: kernel-scientist cases --out data/cases
    """
    from kernel_scientist import problems as catalogue
    from kernel_scientist.hardware import targets
    from kernel_scientist.problems import frozen

    params = call.params()
    problem = catalogue.find(params.problem, targets.resolve(params.target, params.language).device)
    try:
        paths = frozen.freeze(problem, params.profile, environment.root() / out)
    except OSError as error:
        raise SetupError(f"cannot write {error.filename}: {error.strerror}") from error
    click.echo(f"froze {len(paths)} cases of {problem.name} in {out}")


@click.command()
@click.option("--cases", "cases_folder", default="data/cases", metavar="FOLDER", help="The frozen cases.")
@METRICS
@with_params
@JSON
def baseline(cases_folder: str, metrics: str | None, call: Call, as_json: bool) -> None:
    """Time the reference and the seeds (DVC stage), after verifying the reference against the frozen outputs.

    Example: kernel-scientist baseline --metrics reports/baseline.json
    """
    from kernel_scientist.report import problems as reports

    result = reports.baseline(call.params(), environment.root() / cases_folder)
    write_json(metrics, result)
    show(result, as_json)
