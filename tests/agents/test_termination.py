"""SIGTERM to a server ends the campaign that an agent has open: it is recorded as stopped, and can be resumed."""

import signal
import time
from pathlib import Path

import anyio
import pytest
from mcp import ClientSession, McpError

from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore
from kernel_scientist.tracking.subject import Subject
from tests.agents.client import over_http, started
from tests.agents.test_mcp_server import ENDLESS, PATIENT, own_cache
from tests.processes import fork_servers, processes_of

WAIT_S = 60


def campaign(lab: Path) -> tuple[MlflowStore, CampaignRun | None]:
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    return store, store.latest()


@pytest.mark.slow
@pytest.mark.parametrize("is_busy", [True, False], ids=["in a call", "between calls"])
def test_a_campaign_is_ended(lab: Path, is_busy: bool) -> None:
    if is_busy:
        (lab / "problems" / "identity" / "seeds" / "cpp_endless.py").write_text(ENDLESS)
    with started(lab, *PATIENT, **own_cache(lab)) as (server, address):

        async def talk(session: ClientSession) -> None:
            async def begin() -> None:
                try:
                    await session.call_tool("begin_campaign", {"problem": "identity", "evaluations": 1})
                except McpError:  # the server has ended
                    assert is_busy

            async with anyio.create_task_group() as group:
                group.start_soon(begin)
                while is_busy and not (campaign(lab)[1] and fork_servers(lab)):
                    await anyio.sleep(0.2)
                if is_busy:
                    server.send_signal(signal.SIGTERM)
                    while server.poll() is None:
                        await anyio.sleep(0.05)
                    group.cancel_scope.cancel()

        over_http(address, talk)
        server.send_signal(signal.SIGTERM)
        server.wait()
    store, run = campaign(lab)
    assert run is not None and store.client.get_run(run.run_id).info.status == "KILLED"
    assert run.tags["ended"] and (not is_busy or "SIGTERM" in run.tags["ended"])
    assert store.recorded(run.campaign, Subject("identity", "cpp", "cpu")) is not None
    deadline = time.monotonic() + WAIT_S
    while (processes_of(lab) or fork_servers(lab)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not processes_of(lab) and not fork_servers(lab)
