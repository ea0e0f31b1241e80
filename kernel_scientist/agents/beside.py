"""The MCP server at the side of agents that a campaign starts: a process of its own, at a free port of this machine.

It offers what looks and what evaluates, and nothing that records. `main` is the process: standard input brings the
settings, standard output tells the port.
"""

import importlib.util
import json
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict

import anyio

from kernel_scientist.agents import work
from kernel_scientist.agents.work import Settings
from kernel_scientist.records import environment
from kernel_scientist.records.errors import InfrastructureError

OFFERED = frozenset({"problems", "problem", "compile", "check", "evaluate", "profile"})
"""The tools: none begins, fills, shows or confirms a campaign."""
COMMAND = (sys.executable, "-m", "kernel_scientist.sandbox.lifetime", sys.executable, "-m", __name__)
"""The process, which ends with this one."""
LOG = "mcp-beside.log"
"""Name of the file in the cache folder with what the server says of errors."""
FAREWELL_S = 10.0


@contextmanager
def served(settings: Settings, problem: str) -> Generator[str]:
    """Serve for the duration of a campaign; yield the address, empty if the SDK is not installed or the tools do not
    know the problem.

    `settings`: those of the campaign, which apply to every call. Raises InfrastructureError if it does not start.
    """
    if importlib.util.find_spec("mcp") is None or not work.is_listed(problem):
        yield ""
        return
    with (environment.cache_folder() / LOG).open("w") as log:
        process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
    with process:
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(asdict(settings)) + "\n")
            process.stdin.flush()
            if not (port := process.stdout.readline().strip()):
                raise InfrastructureError(f"the MCP server at the agent's side did not start: see {log.name}")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            try:
                process.wait(FAREWELL_S)
            except subprocess.TimeoutExpired:
                process.kill()


def main() -> None:
    """Serve until SIGTERM."""
    environment.prepare()
    given = json.loads(sys.stdin.readline())
    anyio.run(_serve, Settings(tuple(given["overrides"]), given["params_file"]))


async def _serve(settings: Settings) -> None:
    import uvicorn

    from kernel_scientist.agents import server, tools
    from kernel_scientist.agents.children import Children

    with socket.socket() as listening:
        listening.bind((server.HOST, 0))
        listening.listen()
        port: int = listening.getsockname()[1]
        serving = server.Server(server.NAME, server.INSTRUCTIONS, host=server.HOST, port=port, log_level="WARNING")
        children = Children(settings, reads_files=False)
        tools.add(serving, children)
        for tool in await serving.list_tools():
            if tool.name not in OFFERED:
                serving.remove_tool(tool.name)
        serving.reword("evaluate", tools.COUNTED, "a campaign takes your kernel if you leave it in kernel.py.")
        print(port, flush=True)
        app = serving.streamable_http_app()
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=server.FAREWELL_S)
        try:
            await uvicorn.Server(config).serve(sockets=[listening])
        finally:
            with anyio.CancelScope(shield=True):
                await children.close()


if __name__ == "__main__":
    main()
