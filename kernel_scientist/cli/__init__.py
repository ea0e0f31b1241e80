"""The command line. Exit codes: 0 done, 1 the work says no, 2 the call or the set-up is wrong, 3 undecided.

Undecided: the evaluator could not decide, or nothing here executes what was compiled.

Nothing heavy is imported before a command runs. Flows are a layer above this package; they are called by their entry
points (`flows.optimize.optimize`), the same strings that deployments use.
"""

import errno
import os
import signal
import sqlite3
import sys
from typing import Any

import click

from kernel_scientist import __version__
from kernel_scientist.cli.agents import mcp
from kernel_scientist.cli.common import UNDECIDED
from kernel_scientist.cli.controls import control
from kernel_scientist.cli.imported import kernels
from kernel_scientist.cli.laboratory import init
from kernel_scientist.cli.machine import calibrate, compile, doctor, ui
from kernel_scientist.cli.problems import baseline, cases, problems
from kernel_scientist.cli.results import compare, export, report, verify
from kernel_scientist.cli.watch import watch
from kernel_scientist.cli.work import evaluate, optimize, profile, suite, validate
from kernel_scientist.records import environment
from kernel_scientist.records.errors import InfrastructureError, SetupError, StoppedError

WITHOUT_LABORATORY = ("init", "evaluate", "profile", "validate", "compile", "doctor", "problems", "verify")
"""Commands that record nothing: they can do with the problems and parameters that a wheel carries."""
FULL = (errno.ENOSPC, errno.EDQUOT)
REFUSED = (*FULL, *(errno.EROFS, errno.EACCES, errno.EPERM, errno.ELOOP), *(errno.ENOTDIR, errno.EEXIST, errno.EISDIR))
"""What the system says where a folder or disk is wrong, not this program."""
RECORDING = ("optimize", "suite", "control")
"""Commands that another call goes on with."""
UNREAD = 128 + signal.SIGPIPE
"""Exit code of a command whose reader has ended, as in `... | head -n 1`."""
WHOLE = 200
"""Characters of a command's first sentence in `--help`: it is wrapped, not cut."""
OF_EXTRAS = (
    "mlflow",
    "optuna",
    "matplotlib",
    "sqlalchemy",
    "httpx",
    "httpx_sse",
    "sklearn",
    "prefect",
    "dvc",
    "litellm",
    "mcp",
)
"""Packages that an installation without extras lacks."""


class CommandGroup(click.Group):
    """The group of commands: a wrong call gives one sentence and exit code 2, never a traceback."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command. Raises SetupError where it needs a laboratory and there is none."""
        name, command, rest = super().resolve_command(ctx, args)
        if name not in WITHOUT_LABORATORY and not {"-h", "--help"}.intersection(rest) and not environment.is_writable():
            raise SetupError(f"there is no laboratory here or above: `{ctx.command_path} init FOLDER` makes one")
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(str(one.name), one.get_short_help_str(WHOLE)) for one in commands])

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Run the command line. Nobody reads what it prints any more: the exit code is that of SIGPIPE, not 1."""
        try:
            return super().main(*arguments, **settings)
        except (BrokenPipeError, SystemExit) as end:
            of_click = type(sys.stdout).__name__.endswith("PacifyFlushWrapper")  # its mark
            if not of_click and not isinstance(end if isinstance(end, OSError) else end.__context__, BrokenPipeError):
                raise
            for stream in (sys.stdout, sys.stderr):  # what is left of them is not written at the end either
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            raise SystemExit(UNREAD) from None  # click and rich make it 1, which says no

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command and turn exceptions into messages and exit codes."""
        try:
            environment.prepare()
            return super().invoke(ctx)
        except click.UsageError as error:
            command = (error.ctx or ctx).command_path
            click.echo(f"error: {error.format_message()} `{command} --help` says what is possible.", err=True)
            ctx.exit(2)
        except SetupError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2)
        except OSError as error:
            if error.errno not in (REFUSED if error.filename else FULL):
                raise
            if error.filename is None:  # standard output: what is left of it is not written at the end either
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            click.echo(f"error: {error.filename or 'what a command writes'}: {error.strerror}", err=True)
            ctx.exit(2)
        except sqlite3.OperationalError as error:
            click.echo(f"error: the MLflow store: {error}", err=True)
            ctx.exit(2)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in OF_EXTRAS:
                raise
            needs = f"{ctx.invoked_subcommand} needs {package}, which is not installed"
            click.echo(f"error: {needs}: pip install 'gpu-kernel-scientist[all]' brings it", err=True)
            ctx.exit(2)
        except InfrastructureError as error:
            click.echo(f"error: {error}; nothing was decided about the kernel, try again", err=True)
            ctx.exit(UNDECIDED)
        except (KeyboardInterrupt, StoppedError):
            _stopped(ctx)
        except Exception as error:
            from kernel_scientist.campaign import stopping

            if not stopping.was_interrupted(error):
                raise
            _stopped(ctx)


def _stopped(ctx: click.Context) -> None:
    from kernel_scientist.campaign import stopping

    click.echo(stopping.sentence() if ctx.invoked_subcommand in RECORDING else "stopped", err=True)
    stopping.leave()
    ctx.exit(stopping.EXIT_CODE)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__)
def main() -> None:
    """Improve GPU kernels by the scientific method: hypothesis, implementation, measurement, record.

    Exit codes: 0 done, 1 the work says no, 2 the call or the set-up is wrong, 3 undecided (compiled, not executed).

    Example: kernel-scientist optimize --set search.generations=10
    """


SECTIONS = {
    "One kernel": (evaluate, profile, validate, compile),
    "Campaigns": (optimize, suite, control, watch, report, compare, export, verify, ui),
    "Problems": (problems, kernels, cases, baseline),
    "Agents": (mcp,),
    "This machine": (init, doctor, calibrate),
}
"""The commands by what they are about, as `--help` lists them."""
for _section in SECTIONS.values():
    for _command in _section:
        main.add_command(_command)
