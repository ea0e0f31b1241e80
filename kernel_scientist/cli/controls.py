"""The command `control`: two ways of searching at equal budget."""

import sys

import click

from kernel_scientist.cli import progress, terminal
from kernel_scientist.cli.common import JSON, METRICS, ParamOptions, not_empty, show, with_params, write_json


@click.command()
@click.argument("paths", nargs=-1, required=True, help="Files of problems, or folders that contain them.")
@click.option("--name", required=True, callback=not_empty, help="Name of the control; a name used before continues it.")
@click.option("--first", multiple=True, metavar="KEY=VALUE", help="A parameter of the first side; repeatable.")
@click.option("--second", multiple=True, metavar="KEY=VALUE", help="A parameter of the second side; repeatable.")
@click.option(
    "--repeats", default=5, show_default=True, metavar="N", help="Campaigns of each side on each problem, in pairs."
)
@with_params
@METRICS
@JSON
def control(
    call: ParamOptions,
    paths: tuple[str, ...],
    name: str,
    first: tuple[str, ...],
    second: tuple[str, ...],
    repeats: int,
    metrics: str | None,
    as_json: bool,
) -> None:
    """Run two ways of searching at equal budget; report paired differences.

    Both sides have the parameters of --set, among them budget.kernels and budget.tokens. Exit code: 0 a problem has a
    ratio, 1 none has, 2 the call or the set-up is wrong.

    Example: kernel-scientist control problems/softmax problems/rmsnorm --name one --first search.strategy=greedy
    --second search.strategy=tree
    """
    from kernel_scientist import api
    from kernel_scientist.report import control as shown

    terminal.outlast()
    with progress.shown(steps=False):
        result = api.control(name, paths, first, second, repeats, **call.settings)
    summary = result.model_dump(mode="json")
    write_json(metrics, summary)
    show(summary, as_json, shown.shown(result))
    sys.exit(0 if result.ratio is not None else 1)
