"""The command that watches a campaign."""

import json
import sys
import time
from typing import TYPE_CHECKING

import click

from kernel_scientist.cli.common import JSON, ParamOptions, not_empty, with_params
from kernel_scientist.records.errors import SetupError

if TYPE_CHECKING:
    from kernel_scientist.report.screen import Screen
    from kernel_scientist.report.status import Status

STORE_S = 30.0
"""Least time between two readings of a campaign from the MLflow store, which costs more than its file."""


@click.command()
@click.argument(
    "campaign",
    required=False,
    callback=not_empty,
    help="A campaign's id; default: the one that runs in this folder, else the latest.",
)
@click.option("--once", is_flag=True, help="Print the screen once, as text, as is done without a terminal.")
@click.option("--every", type=click.FloatRange(min=1), default=5.0, show_default=True, help="Seconds between updates.")
@with_params
@JSON
def watch(campaign: str | None, once: bool, every: float, call: ParamOptions, as_json: bool) -> None:
    """Show one screen of a campaign: champion, pace, budget, device, verdicts, models.

    Renewed until the campaign ends, or until Ctrl-C; the campaign does not notice.

    Example: kernel-scientist watch
    """
    from rich.console import Console
    from rich.live import Live

    from kernel_scientist.records import overrides
    from kernel_scientist.report import output, status

    given, console = call.params(), Console()
    uri, problem = str(given.tracking.uri), str(given.problem) if overrides.names(call.overrides, "problem") else ""
    screen = _screen(uri, campaign, problem)
    if as_json:
        click.echo(json.dumps(screen.model_dump(mode="json"), indent=1))
        return
    if once or not console.is_terminal:
        output.say(screen.shown())
        return
    try:
        with Live(screen, console=console, auto_refresh=False, screen=True) as live:
            while screen.status.state == status.RUNNING:
                time.sleep(every if screen.status.folder else max(every, STORE_S))
                screen = _screen(uri, screen.status.campaign)
                live.update(screen, refresh=True)
    except KeyboardInterrupt:  # the usual way to leave it
        return
    output.say(screen.shown())
    sys.exit(0)


def _screen(uri: str, campaign: str | None, problem: str = "") -> "Screen":
    """Return the screen of a campaign. Raises SetupError if there is none."""
    from kernel_scientist.report.screen import Screen

    return Screen.of(_status(uri, campaign, problem))


def _status(uri: str, campaign: str | None, problem: str) -> "Status":
    """Return a campaign's status from its file, else from the MLflow store: without an id that of the latest, of a
    problem if one is named. Raises SetupError if there is none."""
    from kernel_scientist.report import status

    kept = status.read(status.file(campaign)) if campaign else status.of_this_folder(problem)
    if kept is not None:
        return kept
    from kernel_scientist.report import status_of
    from kernel_scientist.tracking import found

    recorded = found.find(uri, campaign, problem)
    if recorded is None:
        name = f"no campaign {campaign}" if campaign else f"no campaign{problem and f' of {problem}'}"
        raise SetupError(
            f"there is {name} in this folder or in its MLflow store: start one by `kernel-scientist optimize`"
        )
    return status_of.of_store(recorded)
