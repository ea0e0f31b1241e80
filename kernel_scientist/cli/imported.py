"""Commands about others' kernels, and what they share with the commands that import problems."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from kernel_scientist.cli.common import JSON, not_empty, show
from kernel_scientist.records import environment

if TYPE_CHECKING:
    from kernel_scientist.problems.imports.provenance import Provenance
    from kernel_scientist.records.problem_result import KernelImport

REV = click.option("--rev", callback=not_empty, metavar="R", help="Branch, tag or commit; default: the default branch.")
PROBLEM = "The problem that the kernels are of."


def IMPORTED(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options --rev, --path and --name to a command that imports."""
    named = click.option("--name", callback=not_empty, metavar="NAME", help="Its name here; default: as in the source.")
    path = click.option("--path", callback=not_empty, metavar="PATH", help="A folder or file below SOURCE.")
    return REV(path(named(command)))


def show_import(imported: "Provenance", as_json: bool) -> None:
    """Print what was imported, and what is to be done next."""
    root = environment.root()
    content = imported.content.relative_to(root).as_posix()
    if as_json:
        show({"imported": content, **imported.origin.model_dump()}, as_json)
        return
    click.echo(f"{content} is {imported.words()}")
    click.echo(f"licence    {imported.licence}")
    if content.startswith("problems/"):
        click.echo("trust      its reference runs outside the sandbox: read it before you use it")
    folder = imported.content.parent.relative_to(root).as_posix()
    click.echo(f"next       git add {folder}/.gitignore '{content}'*.dvc && dvc push")


@click.group("reference-kernels")
def kernels() -> None:
    """Import and list others' kernels: seeds of campaigns, or bars beside their champions.

    Example: kernel-scientist reference-kernels list
    """


@kernels.command("import")
@click.argument("source", callback=not_empty, help="Address of a git repository, or a local path.")
@click.option("--problem", required=True, callback=not_empty, metavar="P", help=PROBLEM)
@click.option(
    "--as",
    "use",
    type=click.Choice(["seed", "bar"]),
    default="bar",
    show_default=True,
    help="seed: campaigns start from it, too. bar: it is timed beside the champion, and nothing is derived from it.",
)
@IMPORTED
@JSON
def kernels_import(source: str, problem: str, use: str, as_json: bool, **options: str | None) -> None:
    """Import a kernel file of others by DVC.

    Example: kernel-scientist reference-kernels import ../kernels/fast.py --problem rmsnorm --as bar
    """
    from kernel_scientist.campaign import kernel_imports

    show_import(kernel_imports.bring(source, problem, use, **options), as_json)


@kernels.command("list")
@click.option("--problem", callback=not_empty, metavar="P", help=PROBLEM)
@JSON
def kernels_list(problem: str | None, as_json: bool) -> None:
    """List the imported kernels.

    Example: kernel-scientist reference-kernels list --problem rmsnorm
    """
    from kernel_scientist.campaign import kernel_imports

    rows = list(kernel_imports.listed(problem))
    show(rows, as_json, (_line(row) for row in rows))


def _line(row: "KernelImport") -> str:
    source = f"from {row.origin}" if row.origin else "added here, not imported"
    return f"{row.kernel:40} {row.use:5} {row.language:8} {source}"


@kernels.command("update")
@click.argument("name", callback=not_empty, help="The imported kernel, as `list` names it.")
@REV
@JSON
def kernels_update(name: str, rev: str | None, as_json: bool) -> None:
    """Bring an imported kernel to its source's newest revision, with licence and stored copy.

    Example: kernel-scientist reference-kernels update rmsnorm/bars/fast
    """
    from kernel_scientist.campaign import kernel_imports

    show_import(kernel_imports.update(name, rev), as_json)
