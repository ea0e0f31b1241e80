"""A child process that does one call at a time. A call that is cancelled ends it, with all that it has started."""

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import anyio
import psutil
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from kernel_scientist.agents.work import Settings

COMMAND = (sys.executable, "-m", "kernel_scientist.sandbox.lifetime", sys.executable, "-m")
"""Begins the command of a process that ends with this one."""
CHILD = "kernel_scientist.agents.child"
MOST_BYTES = 64 << 20
"""Of one message of the child process."""
CLOSE_S = 10.0
"""How long it may take to end, and to record how a campaign ended, in seconds."""
WAITING = "waiting for another call to end"
Tell = Callable[[str], Awaitable[None]]


class AgentCallError(Exception):
    """A call that was refused or failed: one sentence."""


class ChildProcess:
    """The process, started by the first call and again after a call was cancelled."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._turn, self._ending = anyio.Lock(), anyio.Lock()
        self._closes = False
        self._process: Process | None = None
        self._messages: BufferedByteReceiveStream | None = None

    async def ask(self, call: str, arguments: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
        """Return the result of a call; `tell` gets its progress. Raises AgentCallError.

        Cancelled, it kills the process and its descendants before it ends, unless that is being closed.
        """
        if self._turn.locked():
            await tell(WAITING)
        async with self._turn:
            try:
                process, messages = await self._started()
                request = {"call": call, "arguments": {**arguments}, "settings": asdict(self.settings)}
                assert process.stdin is not None
                await process.stdin.send(json.dumps(request).encode() + b"\n")
                while True:
                    message = json.loads(await messages.receive_until(b"\n", MOST_BYTES))
                    if "progress" not in message:
                        break
                    await tell(message["progress"])
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError) as error:
                await self._kill()
                raise AgentCallError(f"the process that did `{call}` ended before it was done; try again") from error
            except BaseException:
                if not self._closes:
                    await self._kill()
                raise
        if "error" in message:
            raise AgentCallError(message["error"])
        return message["result"]

    async def close(self) -> None:
        """Let the process end by itself, or kill it; it stops the call in progress and records what it has."""
        self._closes = True
        async with self._ending:
            if self._process is None:
                return
            with anyio.move_on_after(CLOSE_S):
                assert self._process.stdin is not None
                await self._process.stdin.aclose()
                if self._turn.locked():
                    with suppress(ProcessLookupError):
                        self._process.terminate()
                await self._process.wait()
            await self._kill()

    async def _started(self) -> tuple[Process, BufferedByteReceiveStream]:
        if self._closes:
            raise AgentCallError("the server is being stopped")
        if self._process is None or self._messages is None or self._process.returncode is not None:
            self._process = await anyio.open_process([*COMMAND, CHILD], stderr=None, start_new_session=True)
            assert self._process.stdout is not None
            self._messages = BufferedByteReceiveStream(self._process.stdout)
        return self._process, self._messages

    async def _kill(self) -> None:
        process, self._process, self._messages = self._process, None, None
        if process is None:
            return
        with anyio.CancelScope(shield=True):
            kill_tree(process.pid)
            await process.aclose()


def kill_tree(pid: int) -> None:
    """Kill a process and its descendants. It is stopped before they are listed, so that it starts no more of them."""
    try:
        parent = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return
    family = [parent]
    with suppress(psutil.Error):
        parent.suspend()
        family = [*parent.children(recursive=True), parent]
    for one in family:
        with suppress(psutil.Error):  # it ended meanwhile
            one.kill()
