"""The flow that a worker of a pool runs: one request of a campaign, carried out on this host.

Its artifact tells the campaign that it is alive, what it is doing, and in the end the reply. No shared storage is
needed.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactCreate, ArtifactUpdate
from prefect.runtime import flow_run

from kernel_scientist.campaign import pool_host
from kernel_scientist.campaign.steps import progress
from kernel_scientist.campaign.transport import PoolReply, PoolRequest
from tasks import AWAY
from tasks.chain import Chain

T = TypeVar("T")
ARTIFACT = "pool-evaluation"
"""Type of the artifact."""
HEARTBEAT_S = 10.0
POST_S = 900.0
"""How long a reply is offered to a server that does not answer, in seconds."""


@flow(name="pool")
def evaluate(request: PoolRequest) -> None:
    """Carry out one request of a campaign on a device of this host."""
    with _ReportHandler(UUID(str(flow_run.get_id()))) as report:
        reply = pool_host.answer(request, Chain())
    report.post(reply)


class _ReportHandler(logging.Handler):
    """The flow run's artifact: `{"host", "doing", "beat", "reply"}`. The beat rises every HEARTBEAT_S seconds."""

    def __init__(self, run: UUID) -> None:
        super().__init__(logging.DEBUG)
        self._doing, self._beat = "starting", 0
        self._done = threading.Event()
        self._artifact = _insist(lambda: self._create(run))
        self._heart = threading.Thread(target=self._beats, daemon=True)

    def __enter__(self) -> "_ReportHandler":
        progress.addHandler(self)
        progress.setLevel(logging.DEBUG)
        self._heart.start()
        return self

    def __exit__(self, *_: object) -> None:
        progress.removeHandler(self)
        self._done.set()
        self._heart.join()

    def emit(self, record: logging.LogRecord) -> None:
        """Take note of what is being done."""
        self._doing = record.getMessage()

    def post(self, reply: PoolReply) -> None:
        """Publish the reply, however often the server has to be asked."""
        _insist(lambda: self._update(reply.model_dump(mode="json")))

    def _create(self, run: UUID) -> UUID:
        with get_client(sync_client=True) as client:
            artifact = ArtifactCreate(type=ARTIFACT, flow_run_id=run, data=self._data(None))
            return client.create_artifact(artifact).id

    def _update(self, reply: dict[str, Any] | None) -> None:
        with get_client(sync_client=True) as client:
            client.update_artifact(self._artifact, ArtifactUpdate(data=self._data(reply)))

    def _data(self, reply: dict[str, Any] | None) -> dict[str, Any]:
        return {"host": socket.gethostname(), "doing": self._doing, "beat": self._beat, "reply": reply}

    def _beats(self) -> None:
        while not self._done.wait(HEARTBEAT_S):
            self._beat += 1
            try:
                self._update(None)
            except AWAY:  # the campaign cannot reach the server either, and waits
                continue


def _insist(act: Callable[[], T]) -> T:
    until = time.monotonic() + POST_S
    while True:
        try:
            return act()
        except AWAY:
            if time.monotonic() > until:
                raise
            time.sleep(2.0)
