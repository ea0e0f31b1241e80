"""The server: tools and resources over stdio, or over HTTP on this machine. Bad input is one sentence."""

import os
import signal
import socket
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import anyio
from mcp.server.fastmcp import FastMCP
from mcp.server.fastmcp.exceptions import ResourceError, ToolError
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.stdio import stdio_server
from mcp.types import ContentBlock
from pydantic import AnyUrl, ValidationError

from kernel_scientist.agents import resources, tools
from kernel_scientist.agents.children import Children
from kernel_scientist.agents.process import AgentCallError
from kernel_scientist.agents.work import Settings
from kernel_scientist.records.errors import SetupError

NAME = "kernel-scientist"
INSTRUCTIONS = (
    "A laboratory that judges GPU and CPU kernels. A kernel is one Python file that defines custom_kernel(data). "
    "Start with `problems` and `problem`; use `check` until a kernel is right and `evaluate` to time it. "
    "Times are measured on this machine unless a result says predicted."
)
HOST = "127.0.0.1"
FAREWELL_S = 1
"""How long open connections are kept when the server ends, in seconds."""


class Server(FastMCP[None]):
    """The MCP server of a laboratory."""

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Sequence[ContentBlock] | dict[str, Any]:
        """Call a tool. Raises ToolError with one sentence."""
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            known = ", ".join(one.name for one in self._tool_manager.list_tools())
            raise ToolError(f"there is no tool {name!r}; there are {known}")
        valid = list(tool.parameters["properties"])
        if unknown := next((key for key in arguments if key not in valid), None):
            raise ToolError(f"{name} has no argument {unknown!r}; it has {', '.join(valid) or 'none'}")
        try:
            return await super().call_tool(name, arguments)
        except ToolError as error:
            raise ToolError(_sentence(name, error)) from error

    def reword(self, name: str, old: str, new: str) -> None:
        """Replace a part of a tool's description."""
        tool = self._tool_manager.get_tool(name)
        assert tool is not None and old in tool.description
        tool.description = tool.description.replace(old, new)

    async def read_resource(self, uri: AnyUrl | str) -> Iterable[ReadResourceContents]:
        """Read a resource. Raises ResourceError with one sentence."""
        try:
            return await super().read_resource(uri)
        except Exception as error:
            inner: BaseException | None = error
            while inner is not None and not isinstance(inner, AgentCallError):
                inner = inner.__context__
            raise ResourceError(str(inner or error)) from error

    async def serve_stdio(self) -> None:
        """Serve until standard input ends. What else prints to standard output prints to standard error instead."""
        requests = os.fdopen(os.dup(sys.stdin.fileno()), encoding="utf-8", errors="replace")
        answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        async with stdio_server(anyio.wrap_file(requests), anyio.wrap_file(answers)) as (read, write):
            await self._mcp_server.run(read, write, self._mcp_server.create_initialization_options())


def _sentence(tool: str, error: ToolError) -> str:
    """Return what was wrong with a call."""
    cause = error.__cause__
    if isinstance(cause, AgentCallError):
        return str(cause)
    if isinstance(cause, ValidationError):
        first = cause.errors()[0]
        return f"{tool}: argument {'.'.join(map(str, first['loc']))!r}: {first['msg']}"
    return str(error)


def run(settings: Settings, port: int | None = None) -> None:
    """Serve over standard input and output, or on a port of this machine, until the client or a signal ends it."""
    if port is not None:
        _require_free(port)
    anyio.run(_serve, settings, port)


async def _serve(settings: Settings, port: int | None) -> None:
    server = Server(NAME, INSTRUCTIONS, host=HOST, port=port or 0, log_level="WARNING")
    children = Children(settings, reads_files=port is None)
    tools.add(server, children)
    resources.add(server, children)
    async with anyio.create_task_group() as watching:
        watching.start_soon(_end_by_signal, children)
        try:
            if port is None:
                await server.serve_stdio()
            else:
                await _serve_http(server, port)
        finally:
            with anyio.CancelScope(shield=True):
                await children.close()
        watching.cancel_scope.cancel()


async def _end_by_signal(children: Children) -> None:
    """Wait for Ctrl-C or SIGTERM; close the children, whose campaigns are recorded as stopped, and end by the signal.

    The server over stdio has no other way out: a thread waits for its standard input.
    """
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            await children.close()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


async def _serve_http(server: Server, port: int) -> None:
    import uvicorn

    app = server.streamable_http_app()
    config = uvicorn.Config(app, HOST, port, log_level="warning", timeout_graceful_shutdown=FAREWELL_S)
    await uvicorn.Server(config).serve()


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise SetupError(f"--http {port}: cannot serve at {HOST}:{port}: {error.strerror}") from error
