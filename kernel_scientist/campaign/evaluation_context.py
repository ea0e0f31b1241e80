"""The evaluation context: problem, target, evaluator and steps, open for the duration of a flow."""

import math
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING

from kernel_scientist.campaign import preflight
from kernel_scientist.campaign.pool.evaluator import Connect, PoolEvaluator
from kernel_scientist.campaign.steps import FUNCTIONS, Steps
from kernel_scientist.compile import build, gxx
from kernel_scientist.gpu.model import constants
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.hardware import gpu, gpus
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.hardware.targets import Target
from kernel_scientist.problems import published
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.errors import DeviceBusyError, SetupError
from kernel_scientist.records.kernel import Kernel, Language, digest
from kernel_scientist.records.params import Params
from kernel_scientist.sandbox import device_lock, device_queue
from kernel_scientist.sandbox.device_lock import Turn
from kernel_scientist.scientist.context import knowledge
from kernel_scientist.scientist.roles import Assignment, CpuInfo
from kernel_scientist.workers import prepared
from kernel_scientist.workers.pool import WorkerPool

if TYPE_CHECKING:
    from kernel_scientist.evaluate.evaluator import Evaluator

POOL_DEVICES = 64
"""Infinite peaks for a GPU without an entry in the table: every roofline floor is zero."""


class Quiet:
    """Keeps builds and a CPU timing apart: any number of builds run, or one timing, which they would disturb.

    A timing that waits goes before builds that have not begun.
    """

    def __init__(self, active: bool = True) -> None:
        """`active`: False lets everything run at once, as on a GPU."""
        self.active = active
        self._changed = threading.Condition()
        self._running, self._waiting = Counter[str](), 0

    def building(self) -> AbstractContextManager[None]:
        """Hold off timings."""
        return self._held("build", lambda: self._running["timing"] + self._waiting)

    @contextmanager
    def timing(self, wait_s: float | None = None) -> Generator[None]:
        """Hold off builds and other timings. Raises DeviceBusyError if they do not end within `wait_s` seconds."""
        with self._changed:
            self._waiting += 1
        with self._held("timing", lambda: self._running.total(), wait_s):
            yield

    @contextmanager
    def _held(self, work: str, hindrances: Callable[[], int], wait_s: float | None = None) -> Generator[None]:
        with self._changed:
            free = self._free(lambda: not (self.active and hindrances()), wait_s)
            if work == "timing":
                self._waiting -= 1
            if not free:
                self._changed.notify_all()
                raise DeviceBusyError(f"builds of this campaign did not end within {wait_s:g} s")
            self._running[work] += 1
        try:
            yield
        finally:
            with self._changed:
                self._running[work] -= 1
                self._changed.notify_all()

    def _free(self, is_free: Callable[[], bool], wait_s: float | None) -> bool:
        """Wait until it is free, at most so long. Builds end by themselves: who waits for the device waits for them."""
        if wait_s is not None:
            return self._changed.wait_for(is_free, wait_s)
        while not self._changed.wait_for(is_free, device_queue.TOUCH_S):
            device_queue.progressed()
        return True


@dataclass(frozen=True)
class EvaluationContext:
    """Problem, target, evaluator and the steps by which it evaluates kernels."""

    params: Params
    problem: Problem
    target: Target
    evaluator: "Evaluator | PoolEvaluator"
    steps: Steps = FUNCTIONS
    quiet: Quiet = field(default_factory=Quiet)
    campaign: str = ""
    """The campaign for which kernels are evaluated, if it is one."""

    @property
    def devices(self) -> int:
        """Most kernels that are timed at the same time. A pool itself limits them to what its workers can take."""
        return POOL_DEVICES if self.target.pool else 1

    @property
    def stopped(self) -> threading.Event:
        """Set once the work is to end."""
        return self.evaluator.stopped

    @property
    def is_here(self) -> bool:
        """Whether kernels are timed on this host."""
        return not (self.target.model or self.target.board or self.target.pool)

    @contextmanager
    def device(self, purpose: str, still_s: float | None = None) -> Generator[None]:
        """Lock the target's device, if it is on this host.

        `purpose`: what for, such as `time k00012`: others read it who wait. Raises DeviceBusyError if others hold it
        and nothing moves for `still_s` seconds, `harness.device_wait_s` by default (`device_lock.device`). A pool is
        waited for until it can take another request.
        """
        if isinstance(self.evaluator, PoolEvaluator):
            self.evaluator.await_place(at_once=still_s == 0)
        if not (self.is_here or self.target.board):
            yield
            return
        limit_s = self.params.harness.device_wait_s if still_s is None else still_s
        quiet = self.quiet.timing(0.0 if still_s == 0 else None)  # builds of this campaign end by themselves
        with device_lock.device(self.target.lock, limit_s, self.evaluator.stopped, purpose, self.campaign), quiet:
            yield

    def turn(self, purpose: str) -> Turn:
        """Return a turn at the target's device, which is not taken yet. `purpose`: as for `device`."""
        return Turn(partial(self.device, purpose))

    def assignment(self) -> Assignment:
        """Return the agents' assignment."""
        settings, machine = self.params.knowledge, self.evaluator.machine
        gpu = machine if isinstance(machine, Gpu) else None
        return Assignment(
            problem=self.problem,
            profile=self.evaluator.profile,
            language=self.params.language,
            target=self.target.name,
            cpu=self.evaluator.host.cpu if isinstance(self.evaluator, PoolEvaluator) else CpuInfo.of_this_machine(),
            peaks=machine or Machine(f"a GPU of target {self.target.name}", math.inf, {"fp32": math.inf}),
            gpu=gpu,
            knowledge=knowledge.load([environment.root() / path for path in settings.paths]),
            knowledge_tokens=settings.tokens,
            most_findings=settings.findings,
            published=published.best(published.on(self.problem.published, gpu.name)) if gpu else {},
            compiler="" if self.target.board or self.target.pool or not gpu else _gpu_compiler(self.params.language),
        )


@contextmanager
def evaluation_context(
    params: Params, steps: Steps = FUNCTIONS, connect: Connect | None = None
) -> Generator[EvaluationContext]:
    """Open the evaluator of the parameters' problem and target; stop its workers on exit.

    `connect`: returns the transport to a pool; without it there are no pools. Raises SetupError for an unknown problem,
    profile, target or pool, a missing compiler, or a problem that is not admitted.
    """
    problem, target = preflight.resolve(params)
    if target.pool:
        if connect is None:
            raise SetupError(f"target {params.target!r}: only flows reach a pool (optimize, evaluate, validate)")
        remote = PoolEvaluator(params, problem, connect(target.pool))
        yield EvaluationContext(params, remote.problem, target, remote, steps, Quiet(active=False))
        return
    with prepared.pool(params, problem, target) as pool:
        from kernel_scientist.problems import admission  # imports torch, while the pool's fork server does so as well

        admission.require(problem, params.profile)
        evaluator = _evaluator(params, problem, target, pool)
        yield EvaluationContext(params, problem, target, evaluator, steps, Quiet(active=target.device == "cpu"))


def _evaluator(params: Params, problem: Problem, target: Target, pool: WorkerPool) -> "Evaluator":
    from kernel_scientist.evaluate.evaluator import Evaluator

    gpu = target.model or gpus.of_device(target.device)
    if gpu is None or params.language == "cpp":
        return Evaluator(problem, params.profile, params.harness, pool)
    if target.board:
        from kernel_scientist.campaign.kernelbot.evaluator import KernelbotEvaluator

        return KernelbotEvaluator.connected(params, problem, pool, gpu)
    from kernel_scientist.evaluate.predicted import PredictedEvaluator, PreviewedEvaluator

    kind = PredictedEvaluator if target.model else PreviewedEvaluator
    return kind(problem, params.profile, params.harness, pool, gpu)


def _device(target: Target) -> str:
    """Return a text that identifies GPU and driver; empty for a CPU, which `gxx.processor` identifies."""
    if target.model is not None:
        return f"model {target.model.name} {constants.of(target.model.name)}"
    if target.device == "cpu":
        return ""
    import torch

    name, listed = gpus.name_of(target.device), gpus.of_device(target.device)
    fitted = str(constants.of(listed.name)) if listed else ""
    return f"{name} {torch.version.hip} {torch.version.cuda} {gpu.state().get('driver', '')} {fitted}"


def _compiler(language: Language, target: Target) -> str:
    """Return the version of the compiler; empty if torch and triton compile everything."""
    if language == "cpp":
        return gxx.version()
    has_own_compiler = language != "triton" and target.device != "cpu"
    return build.find(gpu=True).version if has_own_compiler else ""


def cache_key(context: EvaluationContext, kernel: Kernel, step: str) -> str:
    """Return the cache key of a step: problem, kernel, toolchain, device, evaluator's sources and settings."""
    return f"{step}-{fingerprint(context.params, context.problem, context.target, kernel, step)}"


def fingerprint(params: Params, problem: Problem, target: Target, kernel: Kernel, step: str) -> str:
    """Return a digest of all that the result of a step on a kernel depends on."""
    parts = (step, problem.digest, params.profile, kernel.digest, kernel.language, target.name)
    machine = (gxx.processor(), _compiler(kernel.language, target), environment.evaluator_digest())
    machine += (metadata.version("torch"), metadata.version("triton"), _device(target))
    settings = (params.harness.model_dump_json(), str(environment.cache_folder()))
    return digest(chr(0).join((*parts, *machine, *settings)))


def _gpu_compiler(language: Language) -> str:
    """Return what compiles a language's kernels for a GPU on this host, with its version; empty if it is not known."""
    if language == "triton":
        return f"Triton {metadata.version('triton')}"
    tools = hip.find() if language == "hip" else ""
    if isinstance(tools, str):
        return ""
    return tools.version if tools.rocm else f"{tools.version} with headers of HIP 5.2 and what ROCm 6 added"
