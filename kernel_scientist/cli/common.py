"""What the commands share: options, parameters, results on the screen and in files."""

import json
from pathlib import Path
from typing import Any

import click

from kernel_scientist import environment

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
INFRASTRUCTURE = 3
"""Exit code: the laboratory could not decide."""


def load(overrides: tuple[str, ...], params_file: str | None) -> Any:
    """Return the parameters of this call."""
    from kernel_scientist import params

    return params.load(Path(params_file) if params_file else environment.root() / "params.yaml", overrides)


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
