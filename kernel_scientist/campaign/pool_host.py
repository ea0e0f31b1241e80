"""The host's side of a pool: carries out one request on a device of this host."""

import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

from kernel_scientist import problems
from kernel_scientist.campaign import configurations, single
from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.campaign.steps import Steps
from kernel_scientist.campaign.transport import Host, PoolReply, PoolRequest
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.hardware import gpu, gpus
from kernel_scientist.hardware.peaks import this_cpu
from kernel_scientist.population.entry import beats
from kernel_scientist.problems.imports import dvc_digest
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.records.params import Params, parse
from kernel_scientist.sandbox import device_lock
from kernel_scientist.sandbox.device_lock import Turn
from kernel_scientist.scientist.roles import CpuInfo

WAIT_S = 24 * 3600.0
"""Longest wait for a free device while nothing moves: the campaign decides when to give up."""


def answer(request: PoolRequest, steps: Steps) -> PoolReply:
    """Carry out a request. A reply with a `refusal` says why this host cannot."""
    name = socket.gethostname()
    try:
        params = parse({**request.params, "target": environment.host_target()}, "the campaign's parameters")
        _require_same(request, params)
        turn = Turn(partial(_free_device, f"{request.operation} {request.kernel.name if request.kernel else name}"))
        steps.take(turn, WAIT_S, "wait for a free device of this host")
        with turn, evaluation_context(params, steps) as context:
            host = _host(context, name)
            if request.device not in ("", host.device):
                raise SetupError(f"its device is {host.device}, the campaign is on {request.device}")
            return _carried_out(request, context, host).model_copy(update={"host": host})
    except SetupError as error:
        return PoolReply(refusal=f"host {name} cannot evaluate this: {error}")


def _require_same(request: PoolRequest, params: Params) -> None:
    """Raise SetupError unless this host has the campaign's versions of problem and evaluator."""
    own = dvc_digest.of_folder(problems.find(params.problem).folder)
    if own != request.problem_digest:
        raise SetupError(
            f"it has version {own} of problem {params.problem}, the campaign has {request.problem_digest} (DVC digests "
            "of the problem's folder); update one of the two checkouts"
        )
    if environment.evaluator_digest() != request.evaluator_digest:
        raise SetupError("it has another version of the evaluator; install the campaign's version of this package")


@contextmanager
def _free_device(purpose: str, still_s: float) -> Generator[None]:
    """Hold one of this host's devices; on a CPU, the whole host. CUDA and HIP see no other device then."""
    numbers = gpu.numbers()
    names = [f"whole-gpu-{number}" for number in numbers] or ["whole-cpu"]
    with device_lock.one_of(names, still_s, purpose=f"a pool's request: {purpose}") as held:
        if numbers:
            chosen = numbers[names.index(held)]
            os.environ |= {"CUDA_VISIBLE_DEVICES": chosen, "HIP_VISIBLE_DEVICES": chosen}
        yield


def _host(context: EvaluationContext, name: str) -> Host:
    address = context.address
    on_cpu = address.device == "cpu"
    return Host(
        name=name,
        target=address.name,  # type: ignore[arg-type]
        device=this_cpu().name if on_cpu else gpus.name_of(address.device),
        devices=1 if on_cpu else max(1, len(gpu.numbers())),
        cpu=CpuInfo.of_this_machine(),
        peaks=this_cpu(),
    )


def _carried_out(request: PoolRequest, context: EvaluationContext, host: Host) -> PoolReply:
    kernel = request.kernel
    if kernel is None:
        return PoolReply()
    match request.operation:
        case "time":
            evaluation = _at(host, _timed(request, context, kernel))
            return PoolReply(evaluation=evaluation, assembly=_assembly(evaluation))
        case "confirm":
            found = single.confirm(context, kernel, request.against, request.baseline)
            found = found.model_copy(update={"evaluation": _at(host, found.evaluation)})
            return PoolReply(confirmation=found, assembly=_assembly(found.evaluation))
        case "tune":
            until = time.monotonic() + request.seconds
            search = configurations.search(
                context, kernel, kernel.name, lambda _: False, lambda: time.monotonic() > until, request.seconds
            )
            return PoolReply(kernel=context.target.tune(search))
        case "describe":
            return PoolReply()


def _timed(request: PoolRequest, context: EvaluationContext, kernel: Kernel) -> Evaluation:
    rival = request.baseline or (request.against[-1].name if request.against else "")

    def gained(timed: Evaluation) -> bool:  # profiling takes a minute or more: only a kernel that may become a base
        return beats(Trial(kernel=kernel, evaluation=timed), rival)

    return single.evaluated(context, kernel, request.against, request.baseline, gained)


def _at(host: Host, evaluation: Evaluation) -> Evaluation:
    return evaluation.model_copy(update={"environment": {**evaluation.environment, "host": host.name}})


def _assembly(evaluation: Evaluation) -> dict[str, str]:
    codes = evaluation.compile.objects if evaluation.compile else ()
    texts = {code.digest: assembly.get(code.digest) for code in codes}
    return {digest: text for digest, text in texts.items() if text is not None}
