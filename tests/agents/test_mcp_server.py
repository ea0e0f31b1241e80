"""HTTP, resources and cancellation, with the official SDK's client."""

import json
import time
from pathlib import Path
from typing import Any

import anyio
import httpx
import mcp.types as types
import pytest
from mcp import ClientSession, McpError
from pydantic import AnyUrl

from tests.agents.client import over_http, over_stdio, refusal, result, serving, text
from tests.conftest import Cli, without_progress
from tests.processes import fork_servers, processes_of

TOOLS = {
    *("problems", "problem", "compile", "check", "evaluate", "profile", "compare"),
    *("begin_campaign", "submit", "confirm", "history", "kernel"),
}
ENDLESS = "import time\n\ndef custom_kernel(data):\n    time.sleep(3600)\n    return data[1]\n"
ANSWERS = 40
"""Answers of the server, 0.05 s apart, after which nothing of a cancelled call is left: 2 s, more on a busy machine."""
PATIENT = ("--set", "harness.call_timeout_s=3600")
"""Without a cancellation the endless kernel would take an hour."""


async def cancelled(session: ClientSession, lab: Path) -> None:
    """Call `evaluate` with a kernel that takes an hour; cancel it when it runs. Soon nothing of it is left."""
    ended, running, answers = anyio.Event(), anyio.Event(), list[str]()

    async def hear(done: float, total: float | None, message: str | None) -> None:
        if message and message.startswith("checking"):
            running.set()

    async def call() -> None:
        try:
            arguments = {"problem": "identity", "source": ENDLESS}
            answers.append(text(await session.call_tool("evaluate", arguments, progress_callback=hear)))
        except McpError as error:
            answers.append(str(error))
        ended.set()

    async with anyio.create_task_group() as group:
        number = session._request_id
        group.start_soon(call)
        await running.wait()
        assert fork_servers(lab) and working(lab)
        params = types.CancelledNotificationParams(requestId=number)
        await session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        await ended.wait()
    assert answers == ["Request cancelled"]
    for _ in range(ANSWERS):
        if not working(lab):
            break
        await session.send_ping()
        await anyio.sleep(0.05)
    assert not working(lab)


def working(lab: Path) -> list[str]:
    """The processes of a call."""
    return [*fork_servers(lab), *(one for one in processes_of(lab) if "agents.child" in one)]


def own_cache(lab: Path) -> dict[str, str]:
    """A cache for this laboratory alone, so that its processes can be told from others'."""
    return {"KERNEL_SCIENTIST_CACHE": str(lab / ".cache")}


def test_over_stdio_a_cancelled_call_leaves_nothing_and_the_end_of_the_client_neither(lab: Path) -> None:
    async def talk(session: ClientSession) -> None:
        await cancelled(session, lab)
        assert (await result(session, "problem", problem="identity"))["problem"] == "identity"

    over_stdio(lab, talk, *PATIENT, **own_cache(lab))
    while processes_of(lab) or fork_servers(lab):
        time.sleep(0.05)
    assert not (lab / "server.log").read_text()


def test_over_http_it_is_the_same_server(lab: Path) -> None:
    async def talk(session: ClientSession) -> None:
        listed = (await session.list_tools()).tools
        assert {one.name for one in listed} == TOOLS
        assert "over HTTP give" in await refusal(session, "check", problem="identity", file="kernel.py")
        await cancelled(session, lab)
        await _read_resources(session)

    with serving(lab, *PATIENT, **own_cache(lab)) as address:
        over_http(address, talk)
        port = address.rpartition(":")[2].partition("/")[0]
        foreign = httpx.post(address, headers={"Host": f"evil.example:{port}"}, json={})
        assert foreign.status_code == 421, "a page of another site must not reach the server"
    while any("agents.child" in one for one in processes_of(lab)):  # it ends with the server
        time.sleep(0.05)


async def _read_resources(session: ClientSession) -> None:
    async def read(address: str) -> Any:
        (content,) = (await session.read_resource(AnyUrl(f"kernel-scientist://{address}"))).contents
        assert isinstance(content, types.TextResourceContents)
        return content.text

    assert "custom_kernel" in await read("skill")
    assert "identity" in await read("problems")
    assert json.loads(await read("problems/identity")) == await result(session, "problem", problem="identity")
    assert {one.uriTemplate for one in (await session.list_resource_templates()).resourceTemplates} == {
        f"kernel-scientist://{one}"
        for one in ("problems/{problem}", "campaigns/{campaign}", "campaigns/{campaign}/kernels/{kernel}")
    }
    with pytest.raises(McpError, match=r"^there is no campaign 'absent'$"):
        await read("campaigns/absent")


def test_a_port_in_use_is_one_sentence(lab: Path, cli_here: Cli) -> None:
    with serving(lab) as address:
        port = address.rpartition(":")[2].partition("/")[0]
        done = cli_here("mcp", "--http", port)
    assert done.returncode == 2
    assert without_progress(done.stderr) == [
        f"error: --http {port}: cannot serve at 127.0.0.1:{port}: Address already in use"
    ]
