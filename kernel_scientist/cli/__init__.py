"""The command line. Exit codes: 0 done, 1 the work says no, 2 the call or the set-up is wrong, 3 undecided.

Undecided: the evaluator could not decide, or nothing here executes what was compiled.

Nothing heavy is imported before a command runs. Flows are a layer above this package; they are called by their entry
points (`flows.optimize.optimize`), the same strings that deployments use.
"""

from typing import Any

import click

from kernel_scientist import __version__
from kernel_scientist.cli.common import UNDECIDED
from kernel_scientist.cli.imported import kernels
from kernel_scientist.cli.machine import calibrate, compile, doctor, ui
from kernel_scientist.cli.problems import baseline, cases, problems
from kernel_scientist.cli.results import compare, export, report
from kernel_scientist.cli.watch import watch
from kernel_scientist.cli.work import evaluate, optimize, suite, validate
from kernel_scientist.records import environment
from kernel_scientist.records.errors import InfrastructureError, SetupError, StoppedError


class CommandGroup(click.Group):
    """The group of commands: a wrong call gives one sentence and exit code 2, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command and turn exceptions into messages and exit codes."""
        environment.prepare()
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            command = (error.ctx or ctx).command_path
            click.echo(f"error: {error.format_message()} `{command} --help` says what is possible.", err=True)
            ctx.exit(2)
        except SetupError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2)
        except InfrastructureError as error:
            click.echo(f"error: {error}; nothing was decided about the kernel, try again", err=True)
            ctx.exit(UNDECIDED)
        except (KeyboardInterrupt, StoppedError):
            from kernel_scientist.campaign import stopping

            click.echo(stopping.sentence() if ctx.invoked_subcommand == "optimize" else "stopped", err=True)
            stopping.leave()
            ctx.exit(stopping.EXIT_CODE)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__)
def main() -> None:
    """Improve GPU kernels by the scientific method: hypothesis, implementation, measurement, record.

    Exit codes: 0 done, 1 the work says no, 2 the call or the set-up is wrong, 3 undecided (compiled, not executed).

    Example: kernel-scientist optimize --set search.generations=10
    """


_WORK = (optimize, suite, evaluate, validate, compile, calibrate)
_RESULTS = (problems, kernels, cases, baseline, watch, report, compare, export, doctor, ui)
for _command in (*_WORK, *_RESULTS):
    main.add_command(_command)
