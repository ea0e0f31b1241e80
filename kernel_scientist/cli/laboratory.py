"""The command that makes a laboratory."""

import shlex
from pathlib import Path

import click

from kernel_scientist.cli.common import not_empty
from kernel_scientist.records import laboratory
from kernel_scientist.records.errors import StoppedError


@click.command()
@click.argument("folder", callback=not_empty, help="The new laboratory's folder; other files may be in it.")
def init(folder: str) -> None:
    """Make a laboratory: a folder with parameters, problems, background documents and deployments.

    Campaigns run in it, and record in it what they find. A checkout of the project is one already, and the only one
    with the pipeline of `dvc repro`, which depends on the source.

    Example: kernel-scientist init my-kernels
    """
    try:
        names = laboratory.create(Path(folder).resolve())
    except StoppedError as error:
        click.echo(error, err=True)
        raise
    click.echo(f"made {folder} with {', '.join(names)}; then: cd {shlex.quote(folder)} && kernel-scientist optimize")
