"""Shared parts of the commands: options, parameters, output of results."""

import functools
import json
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kernel_scientist.records.errors import SetupError

UNDECIDED = 3
"""Exit code: the evaluator could not decide, or the kernel was compiled and not executed."""


@dataclass(frozen=True)
class ParamOptions:
    """The options --set and --params of a call."""

    overrides: tuple[str, ...]
    params_file: str | None

    def params(self) -> Any:
        """Return the parameters."""
        from kernel_scientist.records import params

        return params.load(self.params_file, self.overrides)

    @property
    def settings(self) -> dict[str, Any]:
        """The options as arguments of `kernel_scientist.api`."""
        return {"overrides": self.overrides, "params_file": self.params_file}


def not_empty(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Refuse an empty text: it usually comes from a shell variable that is not set."""
    if value == "":
        raise SetupError(f"{parameter.get_error_hint(context)} is empty")
    return value


def written(is_folder: bool = False, below_root: bool = False) -> Callable[..., Any]:
    """Return a callback for an option that names a file or a folder to write: it is tried before the work begins.

    `below_root`: a relative path starts at the project's folder, else at the working directory.
    """

    def tried(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if not_empty(context, parameter, value) is None:
            return None
        from kernel_scientist.records import environment

        hint = parameter.get_error_hint(context)
        place = (environment.root() if below_root else Path.cwd()) / value
        if place.exists() and place.is_dir() != is_folder:
            raise SetupError(f"{hint}: cannot write {place}: it is a {'file' if is_folder else 'folder'}")
        try:
            if place.exists() and not is_folder:
                with place.open("ab"):
                    pass
            else:
                above = next(one for one in (place, *place.parents) if one.exists())
                with tempfile.TemporaryFile(dir=above):
                    pass
        except OSError as error:
            raise SetupError(f"{hint}: cannot write {place}: {error.strerror}") from error
        return value

    return tried


def text_option(flag: str, metavar: str, text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return an option whose value must not be empty. `text`: its help."""
    return click.option(flag, callback=not_empty, metavar=metavar, help=text)


def with_params(command: Callable[..., None]) -> Callable[..., None]:
    """Add --set and --params to a command, which receives them as `call`."""

    @click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a parameter of params.yaml.")
    @click.option("--params", "params_file", callback=not_empty, metavar="FILE", help="Another params.yaml.")
    @functools.wraps(command)
    def wrapped(overrides: tuple[str, ...], params_file: str | None, **arguments: Any) -> None:
        command(call=ParamOptions(overrides, params_file), **arguments)

    return wrapped


JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")
METRICS = click.option(
    "--metrics", "metrics", callback=written(), metavar="FILE", help="Also write the result to FILE."
)


def show(value: Any, as_json: bool, shown: Iterable[Any] | None = None) -> None:
    """Print a result as JSON, or as lines and tables: `shown`, by default its fields."""
    from kernel_scientist.report import output

    if as_json:
        click.echo(json.dumps(output.as_json(value), indent=1))
        return

    output.say(output.parts(value) if shown is None else shown)


def write_json(path: str | None, value: Any) -> None:
    """Write a result as JSON to a file, if one is named."""
    if path is not None:
        from kernel_scientist.report import output

        output.write_json(Path(path), value)
