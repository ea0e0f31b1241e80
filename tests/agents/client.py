"""The official SDK's client at a server of the laboratory, over stdio or HTTP."""

import json
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, Implementation, TextContent

from tests.conftest import lab_environment

QUICK = ("--set", "harness.stages=1", "--set", "harness.blocks=4", "--set", "harness.noise_runs=0")
CLIENT = Implementation(name="a-client", version="1")
Talk = Callable[[ClientSession], Awaitable[None]]


def over_stdio(lab: Path, talk: Talk, *options: str, sent: Path | None = None, **extra: str) -> None:
    """Start a server and have a client talk to it. `sent`: gets a copy of all bytes that the client gets."""

    async def main() -> None:
        with (lab / "server.log").open("w") as errors:
            command = [sys.executable, "-m", "kernel_scientist", "mcp", *QUICK, *options]
            if sent:
                command = ["sh", "-c", f"{shlex.join(command)} | tee {shlex.quote(str(sent))}"]
            environment = lab_environment(lab, **extra)
            server = StdioServerParameters(command=command[0], args=command[1:], env=environment, cwd=lab)
            async with stdio_client(server, errlog=errors) as streams, opened(*streams) as session:
                await talk(session)

    anyio.run(main)


def over_http(address: str, talk: Talk) -> None:
    async def main() -> None:
        async with streamable_http_client(address) as (read, write, _), opened(read, write) as session:
            await talk(session)

    anyio.run(main)


@asynccontextmanager
async def opened(read: Any, write: Any) -> AsyncIterator[ClientSession]:
    async with ClientSession(read, write, client_info=CLIENT) as session:
        await session.initialize()
        yield session


@contextmanager
def serving(lab: Path, *options: str, **extra: str) -> Iterator[str]:
    """A server over HTTP; yields its address."""
    with started(lab, *options, **extra) as (_, address):
        yield address


@contextmanager
def started(lab: Path, *options: str, **extra: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server over HTTP; yields its process and address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "kernel_scientist", "mcp", "--http", str(port), *QUICK, *options]
    server = subprocess.Popen(command, cwd=lab, env=lab_environment(lab, **extra))
    try:
        while True:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None
            time.sleep(0.1)
        yield server, f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        server.wait()


async def result(session: ClientSession, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool returns."""
    done = await session.call_tool(tool, arguments)
    assert not done.isError, text(done)
    assert done.structuredContent is not None and json.loads(text(done)) == done.structuredContent
    return done.structuredContent


async def refusal(session: ClientSession, tool: str, **arguments: Any) -> str:
    """The sentence with which a tool refuses a call."""
    done = await session.call_tool(tool, arguments)
    assert done.isError
    sentence = text(done)
    assert "\n" not in sentence and not re.search(r"Traceback|Error executing", sentence)
    return sentence


def text(done: CallToolResult) -> str:
    (content,) = done.content
    assert isinstance(content, TextContent)
    return content.text
