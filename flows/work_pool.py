"""A Prefect work pool as the transport of requests: each is a flow run that some worker of the pool picks up.

A flow run shows that it is alive by a rising number in its artifact (`flows.host`). One that falls silent, or that its
worker does not start, is marked as crashed, and the request is sent again.
"""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import State, StateType, WorkerStatus
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelled, Cancelling, Crashed
from prefect.utilities.callables import parameter_schema

from flows import host
from kernel_scientist.campaign.steps import progress
from kernel_scientist.campaign.transport import PoolReply, PoolRequest
from kernel_scientist.records.errors import DeviceBusyError, InfrastructureError, SetupError, StoppedError
from tasks import AWAY, is_lasting

POLL_S = 1.0
SILENT_S = 45.0
"""A running flow run without a new heartbeat for so long is given up."""
START_S = {"process": 60.0}
"""A flow run that a worker claimed and did not start in this time is given up, by type of pool."""
START_ELSEWHERE_S = 900.0
"""The same for pools that pull images and wait for nodes (Docker, Kubernetes)."""
DEATHS, REFUSALS = 5, 2
"""Flow runs of one request that may die, and refusals per worker of the pool, before the request fails."""
REFUSED_DELAY_S = 3.0
"""Delay after a refusal, in which another worker may look for work."""
COUNT_S = 10.0
"""Interval at which the pool's workers are counted."""


class _Report(NamedTuple):
    """The content of a flow run's artifact."""

    host: str = ""
    doing: str = ""
    beat: int = -1
    reply: Any = None


def connect(name: str) -> "WorkPool":
    """Return the transport to a work pool. Raises SetupError if the server does not know it."""
    with get_client(sync_client=True) as client:
        try:
            pool = client.read_work_pool(name)
        except ObjectNotFound as error:
            raise SetupError(
                f"there is no work pool {name!r} on {client.api_url}: create it with `prefect work-pool create --type "
                f"process {name}`, and start `prefect worker start --pool {name}` on a host with the device"
            ) from error
        flow = client.create_flow(host.evaluate)
        deployment = client.create_deployment(
            flow,
            name=f"evaluate-{name}",
            entrypoint="flows.host.evaluate",  # a module: hosts have this package installed
            work_pool_name=name,
            description="compile, check and time one kernel of a campaign on this pool's hosts",
            parameter_openapi_schema=parameter_schema(host.evaluate).model_dump_for_openapi(),
            enforce_parameter_schema=False,
        )
        return WorkPool(name, pool.type, deployment)


class WorkPool:
    """Sends requests to the pool's workers; any number of threads may wait for replies."""

    def __init__(self, name: str, kind: str, deployment: UUID) -> None:
        """`kind`: the pool's type. `deployment`: of `flows.host.evaluate` in this pool."""
        self.name, self.deployment = name, deployment
        self.stopped = threading.Event()
        self._start_s = START_S.get(kind, START_ELSEWHERE_S)
        self._hybrid = kind == "process"
        self._most = 2 if self._hybrid else 64  # other infrastructure queues
        self._room, self._in_flight, self._counted = threading.Condition(), 0, float("-inf")
        self._workers, self._devices = 1, 1

    def send(self, request: PoolRequest, title: str) -> PoolReply:
        """Return a host's reply (see `Transport.send`)."""
        died, refused, reason = 0, 0, ""
        while died < DEATHS and refused < REFUSALS * self._workers:
            with self._place():
                reply, reason = self._asked(request, title)
            if reply is None:
                died += 1
                progress.warning("%s: %s; it is sent again", title, reason)
            elif reply.refusal:
                refused, reason = refused + 1, reply.refusal
                self._wait(REFUSED_DELAY_S)
            else:
                self._devices = reply.host.devices if reply.host else self._devices
                return reply
        if died < DEATHS:
            raise SetupError(reason)
        raise InfrastructureError(f"{title}: {DEATHS} flow runs of pool {self.name} died: {reason}")

    def _asked(self, request: PoolRequest, title: str) -> tuple[PoolReply | None, str]:
        """Return the reply of one flow run, or None and how it died."""
        run, key = None, str(uuid4())  # the key: a submission that is repeated makes no second run
        watch = _Watch(self.name, self._start_s)
        try:
            while True:
                try:
                    with get_client(sync_client=True) as client:
                        run = run or self._submitted(client, request, title, key)
                        state, report = _read(client, run)
                        if report.reply is not None:
                            return PoolReply.model_validate(report.reply), ""
                        if death := watch.death(state, report):
                            if not state.is_final():
                                client.set_flow_run_state(run, Crashed(message=death), force=True)
                            return None, death
                except AWAY as error:
                    if is_lasting(error):
                        raise SetupError(f"the Prefect server refuses runs for pool {self.name}: {error}") from error
                    watch.server_away(error)
                self._wait(POLL_S)
        except BaseException:
            if run is not None:
                _cancel(run)
            raise

    def _submitted(self, client: SyncPrefectClient, request: PoolRequest, title: str, key: str) -> UUID:
        return client.create_flow_run_from_deployment(
            self.deployment,
            parameters={"request": request.model_dump(mode="json")},
            name=title,
            tags=["pool", self.name],
            idempotency_key=key,
        ).id

    def _wait(self, seconds: float) -> None:
        if self.stopped.wait(seconds):
            raise StoppedError("stopped by a signal")

    def await_place(self, at_once: bool) -> None:
        """Wait until the pool's workers can take another flow run (see `Transport.await_place`)."""
        while not self._has_place():
            if at_once:
                raise DeviceBusyError(f"the workers of pool {self.name} have enough to do")
            self._wait(POLL_S)

    def _has_place(self, take: bool = False) -> bool:
        with self._room:
            self._count()
            free = self._in_flight < self._most
            self._in_flight += take and free
            return free

    @contextmanager
    def _place(self) -> Generator[None]:
        """Wait until the pool's workers can take another flow run: more would only wait, with old rivals."""
        while not self._has_place(take=True):
            self._wait(POLL_S)
        try:
            yield
        finally:
            with self._room:
                self._in_flight -= 1

    def _count(self) -> None:
        """Set the most flow runs: for each worker of a process pool one per device and one that waits."""
        if not self._hybrid or time.monotonic() - self._counted < COUNT_S:
            return
        self._counted = time.monotonic()
        try:
            with get_client(sync_client=True) as client:
                workers = client.read_workers_for_work_pool(self.name)
        except AWAY:
            return
        self._workers = max(1, sum(worker.status == WorkerStatus.ONLINE for worker in workers))
        self._most = self._workers * (self._devices + 1)


class _Watch:
    """Decides when a flow run is given up. Time in which the server does not answer does not count."""

    def __init__(self, pool: str, start_s: float) -> None:
        self.pool, self.start_s = pool, start_s
        self._news: Any = None
        self._since = time.monotonic()
        self._away: datetime | None = None
        self._told = False

    def death(self, state: State[Any], report: _Report) -> str:
        """Return how the flow run died; empty while there is hope."""
        now, news = time.monotonic(), (state.type, report.beat)
        if self._away or news != self._news:
            self._news, self._since, self._away = news, now, None
        waited_s = now - self._since
        where = f" on {report.host}" if report.host else ""
        if state.is_final():
            message = f": {state.message}" if state.message else ""
            return f"its flow run ended as {state.name}{where} without a reply{message}"
        if state.type is StateType.RUNNING or report.beat >= 0:
            return f"its flow run{where} gave no sign of life for {SILENT_S:g} s" if waited_s > SILENT_S else ""
        if state.type is StateType.PENDING:
            return f"its worker did not start it in {self.start_s:g} s" if waited_s > self.start_s else ""
        if waited_s > SILENT_S and not self._told:
            self._told = True
            progress.warning("waiting since %s for a worker of pool %s", f"{datetime.now():%H:%M:%S}", self.pool)
        return ""

    def server_away(self, error: Exception) -> None:
        """Take note that the server does not answer."""
        if self._away is None:
            self._away = datetime.now()
            reason = type(error).__name__
            progress.warning("waiting since %s for the Prefect server (%s)", f"{self._away:%H:%M:%S}", reason)


def _read(client: SyncPrefectClient, run: UUID) -> tuple[State[Any], _Report]:
    """Return a flow run's state and report. The state is read first: a reply is posted before the run ends."""
    found = client.read_flow_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run])))
    if not found or found[0].state is None:
        return Crashed(message="the server does not know it"), _Report()
    artifacts = client.read_artifacts(artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run])))
    data: Any = next((artifact.data for artifact in artifacts if artifact.type == host.ARTIFACT), None)
    return found[0].state, _Report(**data) if data else _Report()


def _cancel(run: UUID) -> None:
    """Cancel a flow run, if the server still knows it; its worker ends its process."""
    try:
        with get_client(sync_client=True) as client:
            state = client.read_flow_run(run).state
            if state is not None and not state.is_final():
                claimed = state.type in (StateType.RUNNING, StateType.PENDING)
                client.set_flow_run_state(run, Cancelling() if claimed else Cancelled(), force=True)
    except ObjectNotFound:
        pass
    except AWAY:
        progress.warning("the Prefect server does not answer: flow run %s is not cancelled", run)
