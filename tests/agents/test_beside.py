"""The server at the side of an agent's command: what it offers, and that it ends."""

from pathlib import Path

import pytest
from mcp import ClientSession

from kernel_scientist.agents import beside
from kernel_scientist.agents.work import Settings
from tests.agents.client import QUICK, over_http, refusal, result
from tests.processes import processes_of


@pytest.mark.slow
def test_it_checks_and_evaluates_and_begins_and_confirms_nothing(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    monkeypatch.setenv("PREFECT_HOME", str(lab / ".prefect"))
    source = (lab / "problems" / "identity" / "seeds" / "cpp_blocked.py").read_text()

    async def talk(session: ClientSession) -> None:
        offered = {tool.name: tool.description or "" for tool in (await session.list_tools()).tools}
        assert offered.keys() == beside.OFFERED and not any("submit" in told for told in offered.values())
        assert "leave it in kernel.py" in offered["evaluate"]
        shown = await result(session, "problem", problem="identity")
        assert "size2097152" in str(shown) and "2000003" not in str(shown)
        assert (await result(session, "check", problem="identity", source=source))["verdict"] == "ok"
        assert "over HTTP give the kernel's text" in await refusal(session, "check", problem="identity", file="a.py")
        for tool in ("begin_campaign", "submit", "history", "kernel", "confirm", "compare"):
            assert f"there is no tool '{tool}'" in await refusal(session, tool)

    with beside.served(Settings(), "/somewhere/else.py") as none:
        assert not none
    with beside.served(Settings(QUICK[1::2]), "identity") as address:
        over_http(address, talk)
        assert processes_of(lab)
    assert not any(beside.__name__ in command for command in processes_of(lab))
