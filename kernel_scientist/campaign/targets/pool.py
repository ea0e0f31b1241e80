"""The targets `pool:NAME`: a host of a work pool compiles, checks and times a kernel in one request."""

import copy
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from typing_extensions import override

from kernel_scientist.campaign.target import Procedure, Target, Timer, TuningSearch
from kernel_scientist.campaign.transport import Connect, Host, PoolReply, PoolRequest, Transport
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.hardware import gpus
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.problems import find
from kernel_scientist.problems.imports import dvc_digest
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.errors import InfrastructureError, SetupError
from kernel_scientist.records.evaluation import Confirmation, Evaluation
from kernel_scientist.records.kernel import Kernel, Language, Verdict
from kernel_scientist.records.params import Harness, Params
from kernel_scientist.scientist.roles import CpuInfo

NOT_SENT: dict[str, Any] = {"llm_calls": (), "authors": {}, "attempts": (), "tries": ()}
"""History of a kernel, which no host needs."""


def require(params: Params, problem: Problem, address: Address) -> None:
    """Raise SetupError without the server of the pool's workers; a host of the pool checks the rest."""
    if not os.environ.get("PREFECT_API_URL"):
        raise SetupError(
            f"target {params.target!r} needs the Prefect server of the pool's workers: set PREFECT_API_URL to its "
            "address, such as http://server:4200/api"
        )


@contextmanager
def opened(params: Params, problem: Problem, address: Address, connect: Connect | None) -> Generator[Target]:
    """Open a pool. Raises SetupError without such a pool, or if no host of it describes itself."""
    if connect is None:
        raise SetupError(f"target {params.target!r}: only flows reach a pool (optimize, evaluate, validate)")
    transport = connect(address.remote)
    host = Requests(params, problem, transport).description()
    yield Pool(params, problem, address, transport, host)


def toolchain(language: Language, address: Address) -> str:
    """Return nothing: a host of the pool has compilers and a device of its own."""
    return ""


class Requests:
    """Requests of one campaign to the hosts of a pool."""

    def __init__(self, params: Params, problem: Problem, transport: Transport, device: str = "") -> None:
        """`device`: the model that devices must be of; empty: any."""
        self.params, self.harness, self.transport, self.device = params, params.harness, transport, device
        self._folder, self._problem_digest = problem.folder, dvc_digest.of_folder(problem.folder)

    def description(self) -> Host:
        """Return a host's description of itself. Raises SetupError."""
        host = self.send("describe", "describe the device").host
        if host is None:
            raise SetupError("a host of the pool replied without a description")
        return host

    def send(
        self,
        operation: str,
        title: str,
        kernel: Kernel | None = None,
        against: tuple[TimedSource, ...] = (),
        baseline: str | None = None,
        seconds: float = 0.0,
    ) -> PoolReply:
        """Return the reply to a request. `title`: what it is for."""
        own = {"harness": self.harness, "problem": self._folder.name}
        params = self.params.model_copy(update=own).model_dump(mode="json", by_alias=True)
        request = PoolRequest(
            operation=operation,  # type: ignore[arg-type]
            params=params,
            problem_digest=self._problem_digest,
            evaluator_digest=environment.evaluator_digest(),
            device=self.device,
            kernel=kernel.model_copy(update=NOT_SENT) if kernel else None,
            against=against,
            baseline=baseline,
            seconds=seconds,
        )
        reply = self.transport.send(request, title)
        for text in reply.assembly.values():
            assembly.put(text)
        return reply


class Pool(Target):
    """Evaluates kernels of one problem on the hosts of a pool, all of them on one model of device."""

    devices = 64
    repeats = True
    """The pool sends a request again whose host died, and hosts repeat their own steps."""

    def __init__(self, params: Params, problem: Problem, address: Address, transport: Transport, host: Host) -> None:
        """`host`: the description of one of them."""
        problem = find(params.problem, "cpu" if host.target == "cpu" else "cuda", params.compat)
        machine = host.peaks if host.target == "cpu" else gpus.detected(host.device)
        super().__init__(params, problem, address, problem.profile(params.profile), machine, transport.stopped)
        self.host, self.requests = host, Requests(params, problem, transport, host.device)

    @property
    @override
    def cpu(self) -> CpuInfo:
        return self.host.cpu

    @override
    def await_place(self, at_once: bool) -> None:
        self.requests.transport.await_place(at_once)

    @override
    def timing_title(self, kernel: Kernel) -> str:
        return f"compile and time {kernel.name} on pool {self.address.remote}"

    @override
    def with_harness(self, harness: Harness) -> Timer:
        other = copy.copy(self)
        other.requests = copy.copy(self.requests)
        other.requests.harness = harness
        return other

    @override
    def forgo_noise(self) -> None:
        """Let hosts measure no noise: `harness.margin` is the margin."""
        self.requests.harness = self.requests.harness.model_copy(update={"noise_runs": 0})

    @override
    def time(
        self, kernel: Kernel, so_far: Evaluation, against: Sequence[TimedSource], baseline: str | None = None
    ) -> Evaluation:
        """Compile and check a kernel on a host and time it there beside others."""
        if so_far.verdict is not Verdict.OK:
            return so_far
        reply = self.requests.send("time", f"evaluate {kernel.name}", kernel, tuple(against), baseline)
        if reply.evaluation is None:
            raise InfrastructureError("a host of the pool replied without an evaluation")
        return reply.evaluation

    @override
    def tune(self, search: TuningSearch) -> Kernel | None:
        """Let one host search, for so many seconds."""
        title = f"tune {search.base.name}"
        best = self.requests.send("tune", title, search.base, seconds=search.seconds).kernel
        return best.model_copy(update={"name": search.name}) if best else None

    @override
    def confirmed(
        self,
        procedure: Procedure,
        kernel: Kernel,
        checked: Evaluation,
        others: Sequence[TimedSource],
        baseline: str | None,
    ) -> Confirmation:
        send = partial(self._confirmation, kernel, others, baseline)
        return procedure.time(kernel, send, f"confirm {kernel.name} on {self.address.name}", noise=False)

    def _confirmation(self, kernel: Kernel, others: Sequence[TimedSource], baseline: str | None) -> Confirmation:
        reply = self.requests.send("confirm", f"confirm {kernel.name}", kernel, tuple(others), baseline)
        if reply.confirmation is None:
            raise InfrastructureError("a host of the pool replied without a confirmation")
        return reply.confirmation
