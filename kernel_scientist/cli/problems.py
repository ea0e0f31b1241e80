"""Commands about problems: list, description, frozen cases, times of the reference and the seeds."""

import sys
from typing import TYPE_CHECKING

import click

from kernel_scientist.cli import progress
from kernel_scientist.cli.common import JSON, METRICS, ParamOptions, not_empty, show, with_params, write_json, written
from kernel_scientist.cli.imported import IMPORTED, REV, show_import
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.text import number_of

if TYPE_CHECKING:
    from kernel_scientist.records.problem_result import Admission


@click.group()
def problems() -> None:
    """List and describe the problems.

    Example: kernel-scientist problems list
    """


@problems.command("list")
@JSON
def problems_list(as_json: bool) -> None:
    """List the problems, and where the imported ones came from.

    Example: kernel-scientist problems list
    """
    from kernel_scientist import api
    from kernel_scientist.report.problems import lines

    rows = api.list_problems()
    show(rows, as_json, lines(rows))
    if broken := [row.problem for row in rows if row.is_broken]:
        raise SetupError(f"broken, see above: {', '.join(broken)}; `problems show NAME` says what is wrong")


@problems.command("import")
@click.argument("source", callback=not_empty, help="Address of a git repository, or a local path.")
@IMPORTED
@JSON
def problems_import(source: str, as_json: bool, **options: str | None) -> None:
    """Import a problem, or a set of problems, of others by DVC.

    It is imported as problems/NAME, with its licence. If a problem's task.yml names files above its folder, the folder
    that holds them all is imported.

    Example: kernel-scientist problems import https://example.com/kernels.git --path problems/amd/gemm --rev v1
    """
    from kernel_scientist.problems.imports import importing

    show_import(importing.problem(source, **options), as_json)


@problems.command("update")
@click.argument("name", callback=not_empty, help="The imported problem or set.")
@REV
@JSON
def problems_update(name: str, rev: str | None, as_json: bool) -> None:
    """Bring an imported problem to its source's newest revision, with licence and stored copy.

    Example: kernel-scientist problems update amd
    """
    from kernel_scientist.problems.imports import importing

    show_import(importing.update_problem(name, rev), as_json)


@problems.command("show")
@click.argument("name", callback=not_empty, help="Name or path of a problem.")
@click.option("--write-lab", is_flag=True, help="Write what was assumed into the folder's lab.yml.")
@JSON
def problems_show(name: str, write_lab: bool, as_json: bool) -> None:
    """Describe a problem: text, source, cases, roofline floors, what was assumed.

    Example: kernel-scientist problems show fp8-blockwise-gemm
    """
    from kernel_scientist import api
    from kernel_scientist.campaign import describing
    from kernel_scientist.report.problems import description

    result = api.describe_problem(name)
    if write_lab:
        describing.write_lab(name)
    show(result, as_json, description(result))


@problems.command("admit")
@click.argument("paths", nargs=-1, required=True, help="Files of problems, or folders that contain them.")
@click.option(
    "--limit",
    "limit_s",
    type=click.IntRange(1, 86400),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of a problem.",
)
@click.option("--compat", type=click.Choice(["intended", "official"]), default="intended", show_default=True)
@JSON
def problems_admit(paths: tuple[str, ...], limit_s: float, compat: str, as_json: bool) -> None:
    """Say which problems at and below some paths can be used, and why the others cannot.

    Example: kernel-scientist problems admit KernelBench/level1
    """
    from kernel_scientist import api

    def done(one: "Admission") -> None:
        if not as_json:
            click.echo(f"{one.problem}: {one.reason or 'admissible'}", err=True)

    result = api.admit(paths, limit_s, compat, done)
    show(result, as_json, [f"{result.admissible} of {result.of} problems are admissible"])
    sys.exit(0 if result.admissible == result.of else 1)


@click.command()
@click.option(
    "--out",
    "out",
    callback=written(is_folder=True, below_root=True),
    default="data/cases",
    metavar="FOLDER",
    help="Where to write them.",
)
@with_params
def cases(out: str, call: ParamOptions) -> None:
    """Freeze the checking cases' inputs and expected outputs (DVC stage).

    Example: kernel-scientist cases --out data/cases
    """
    from kernel_scientist import problems as catalogue
    from kernel_scientist.hardware import addresses
    from kernel_scientist.problems import frozen

    params = call.params()
    device = addresses.resolve(params.target, params.language).device
    problem = catalogue.find(params.problem, device, params.compat)
    try:
        paths = frozen.freeze(problem, params.profile, environment.root() / out)
    except OSError as error:
        raise SetupError(f"cannot write {error.filename}: {error.strerror}") from error
    click.echo(f"froze {number_of(len(paths), 'case')} of {problem.name} in {out}")


@click.command()
@click.option("--cases", "cases_folder", default="data/cases", metavar="FOLDER", help="The frozen cases.")
@METRICS
@with_params
@JSON
def baseline(cases_folder: str, metrics: str | None, call: ParamOptions, as_json: bool) -> None:
    """Time the reference and the seeds (DVC stage), after verifying the reference against the frozen outputs.

    Example: kernel-scientist baseline --metrics reports/baseline.json
    """
    from kernel_scientist import api
    from kernel_scientist.report import output

    with progress.shown():
        result = api.baseline(cases_folder, **call.settings)
    write_json(metrics, result)
    show(output.as_json(result), as_json)
