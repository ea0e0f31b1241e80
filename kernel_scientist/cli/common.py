"""What the commands share: options, parameters, results on the screen and in files."""

import json
from pathlib import Path
from typing import Any

import click

from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError


def not_empty(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Refuse an empty text: it comes of a shell's variable that was not set, and whoever wrote it meant something."""
    if value == "":
        raise SetupError(f"{parameter.get_error_hint(context)} is empty")
    return value


SET = click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a parameter of params.yaml."
)
PARAMS = click.option("--params", "params_file", callback=not_empty, metavar="FILE", help="Another params.yaml.")
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
INFRASTRUCTURE = 3
"""Exit code: the laboratory could not decide."""


def load(overrides: tuple[str, ...], params_file: str | None, **options: str | None) -> Any:
    """Return the parameters of this call; options: those that are a parameter of their name, where they were given."""
    from kernel_scientist.records import params

    given = {name: value for name, value in options.items() if value is not None}
    return params.load(Path(params_file) if params_file else environment.root() / "params.yaml", overrides, given)


def show(value: Any, as_json: bool, brief: bool = False) -> None:
    """Print a result; `brief` leaves out what was written to a file anyway."""
    if brief and not as_json:
        value = {k: v for k, v in value.items() if k in BRIEF}
    if as_json:
        click.echo(json.dumps(value, indent=1))
        return
    from kernel_scientist.report import terminal

    terminal.show(value)


def write_json(path: Path, value: Any) -> None:
    """Write a result where DVC or the user wants it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")
