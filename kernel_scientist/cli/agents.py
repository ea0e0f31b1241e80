"""The command that serves the laboratory to agents."""

import click

from kernel_scientist.cli.common import ParamOptions, with_params


@click.command()
@click.option("--http", "port", type=click.IntRange(1, 65535), metavar="PORT", help="Serve at 127.0.0.1:PORT/mcp.")
@with_params
def mcp(port: int | None, call: ParamOptions) -> None:
    """Serve tools for agents, such as Claude Code and Codex, by the Model Context Protocol.

    Without --http over standard input and output, as a client starts it. --set and --params apply to every call.

    Example: kernel-scientist mcp --http 8321
    """
    from kernel_scientist.agents import server
    from kernel_scientist.agents.work import Settings

    call.params()
    server.run(Settings(call.overrides, call.params_file), port)
