"""Commands about problems: list, description, frozen cases, times of the reference and the seeds."""

import sys

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
    from kernel_scientist.report.problems import overview

    rows = overview()
    lacking = {row["problem"]: f" (needs {', '.join(row['needs'])})" for row in rows if row["needs"]}
    show(rows, as_json, (f"{row['problem']:28} {row['about']}{lacking.get(row['problem'], '')}" for row in rows))


@problems.command("show")
@click.argument("name")
@click.option("--write-lab", is_flag=True, help="Write what was assumed into the folder's lab.yml.")
@JSON
def problems_show(name: str, write_lab: bool, as_json: bool) -> None:
    """Describe a problem: text, cases, roofline floors, what was assumed.

    Example: kernel-scientist problems show fp8-blockwise-gemm
    """
    from kernel_scientist.report import problems as reports

    show(reports.described(name, write_lab), as_json)


@problems.command("admit")
@click.argument("paths", nargs=-1, required=True)
@click.option("--limit", "limit_s", default=60.0, show_default=True, metavar="SECONDS", help="Time limit of a problem.")
@click.option("--compat", type=click.Choice(["intended", "official"]), default="intended", show_default=True)
@JSON
def problems_admit(paths: tuple[str, ...], limit_s: float, compat: str, as_json: bool) -> None:
    """Say which problems at and below some paths can be used, and why the others cannot.

    Example: kernel-scientist problems admit KernelBench/level1
    """
    from kernel_scientist.report.admissions import admitted

    def done(row: dict[str, object]) -> None:
        if not as_json:
            click.echo(f"{row['problem']}: {row['reason'] or 'admissible'}", err=True)

    result = admitted(paths, limit_s, compat, done)
    show(result, as_json, [f"{result['admissible']} of {result['of']} problems are admissible"])
    sys.exit(0 if result["admissible"] == result["of"] else 1)


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
