"""What the commands share: options, parameters, output of results."""

import json
from pathlib import Path
from typing import Any

import click

from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError


def not_empty(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Refuse an empty text: it usually comes from a shell variable that is not set."""
    if value == "":
        raise SetupError(f"{parameter.get_error_hint(context)} is empty")
    return value


SET = click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a parameter of params.yaml."
)
PARAMS = click.option("--params", "params_file", callback=not_empty, metavar="FILE", help="Another params.yaml.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")
METRICS = click.option("--metrics", "metrics", metavar="FILE", help="Also write the result to FILE.")
INFRASTRUCTURE = 3
"""Exit code: the evaluator could not decide."""


def load(overrides: tuple[str, ...], params_file: str | None, **options: str | None) -> Any:
    """Return the parameters of this call; `options` override parameters of the same name unless they are None."""
    from kernel_scientist.records import params

    given = {name: value for name, value in options.items() if value is not None}
    return params.load(Path(params_file) if params_file else environment.root() / "params.yaml", overrides, given)


def show(value: Any, as_json: bool) -> None:
    """Print a result as JSON or as text."""
    if as_json:
        click.echo(json.dumps(value, indent=1))
        return
    from kernel_scientist.report import terminal

    terminal.show(value)


def write_json(path: Path, value: Any) -> None:
    """Write a result as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")
