"""The child processes of a server, and what of a call goes to them."""

from collections.abc import Mapping
from typing import Any

from mcp.server.fastmcp import Context

from kernel_scientist.agents.child import LOOKS
from kernel_scientist.agents.process import AgentCallError, ChildProcess
from kernel_scientist.agents.work import Settings
from kernel_scientist.compilers.source import read_file
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError

Json = dict[str, Any]
Call = Context[Any, Any, Any]
"""A call of a tool."""


class Children:
    """The child processes: one for what measures, one for what only looks, so that looking waits for nothing."""

    def __init__(self, settings: Settings, reads_files: bool) -> None:
        """`reads_files`: whether a client may name a file, as one that was started by the same user may."""
        self._measuring, self._looking = ChildProcess(settings), ChildProcess(settings)
        self._reads_files = reads_files

    async def ask(self, context: Call | None, call: str, arguments: Mapping[str, Any]) -> Json:
        """Return the result of a call; its progress goes to the client of `context`. Raises AgentCallError."""
        count = 0

        async def tell(text: str) -> None:
            nonlocal count
            count += 1
            if context is not None:
                await context.report_progress(count, message=text)

        child = self._looking if call in LOOKS else self._measuring
        return await child.ask(call, arguments, tell)

    def source(self, source: str, file: str) -> str:
        """Return a kernel's text from one of two arguments. Raises AgentCallError."""
        if bool(source) == bool(file):
            raise AgentCallError("give either `source`, the kernel's text, or `file`, its path")
        if source:
            return source
        if not self._reads_files:
            raise AgentCallError("`file` is for servers over stdio: over HTTP give the kernel's text as `source`")
        if not file.endswith(".py"):
            raise AgentCallError(f"file {file!r}: a kernel is a Python file, whose name ends with .py")
        try:
            return read_file(environment.root() / file)
        except SetupError as error:
            raise AgentCallError(str(error)) from error

    async def close(self) -> None:
        """End the processes."""
        for child in (self._measuring, self._looking):
            await child.close()
