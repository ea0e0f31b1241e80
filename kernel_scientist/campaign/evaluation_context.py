"""The evaluation context: problem, target, evaluator and steps, open for the duration of a flow."""

import math
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from kernel_scientist.campaign import preflight
from kernel_scientist.campaign.bench import Bench, BuildTimingLock
from kernel_scientist.campaign.pool_evaluator import Connect, PoolEvaluator
from kernel_scientist.campaign.steps import FUNCTIONS, Steps
from kernel_scientist.compilers import build, gxx
from kernel_scientist.gpu.model import constants
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.hardware import gpu, gpus
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.hardware.targets import Target
from kernel_scientist.problems import published
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Kernel, Language, digest
from kernel_scientist.records.params import Params
from kernel_scientist.scientist import knowledge
from kernel_scientist.scientist.roles import Assignment, CpuInfo
from kernel_scientist.workers import prepared
from kernel_scientist.workers.pool import WorkerPool

if TYPE_CHECKING:
    from kernel_scientist.evaluation.evaluator import Evaluator


@dataclass(frozen=True)
class EvaluationContext(Bench):
    """A bench, and the steps by which kernels are evaluated on it."""

    steps: Steps = FUNCTIONS

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
            compiler=""
            if self.target.board or self.target.pool
            else _prompted_compiler(self.params.language, gpu is not None),
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
        yield EvaluationContext(params, remote.problem, target, remote, BuildTimingLock(active=False), steps=steps)
        return
    with prepared.pool(params, problem, target) as pool:
        from kernel_scientist.problems import admission  # imports torch, while the pool's fork server does so as well

        admission.require(problem, params.profile)
        evaluator = _evaluator(params, problem, target, pool)
        yield EvaluationContext(
            params, problem, target, evaluator, BuildTimingLock(target.device == "cpu"), steps=steps
        )


def _evaluator(params: Params, problem: Problem, target: Target, pool: WorkerPool) -> "Evaluator":
    from kernel_scientist.evaluation.evaluator import Evaluator

    gpu = target.model or gpus.of_device(target.device)
    if gpu is None or params.language == "cpp":
        return Evaluator(problem, params.profile, params.harness, pool)
    if target.board:
        from kernel_scientist.campaign.kernelbot.evaluator import KernelbotEvaluator

        return KernelbotEvaluator.connected(params, problem, pool, gpu)
    from kernel_scientist.evaluation.predicted import PredictedEvaluator, PreviewedEvaluator

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


def cache_key(bench: Bench, kernel: Kernel, step: str) -> str:
    """Return the cache key of a step: problem, kernel, toolchain, device, evaluator's sources and settings."""
    return f"{step}-{fingerprint(bench.params, bench.problem, bench.target, kernel, step)}"


def fingerprint(params: Params, problem: Problem, target: Target, kernel: Kernel, step: str) -> str:
    """Return a digest of all that the result of a step on a kernel depends on."""
    parts = (step, problem.digest, params.profile, kernel.digest, kernel.language, target.name)
    machine = (gxx.processor(), _compiler(kernel.language, target), environment.evaluator_digest())
    machine += (metadata.version("torch"), metadata.version("triton"), _device(target))
    settings = (params.harness.model_dump_json(), str(environment.cache_folder()))
    return digest(chr(0).join((*parts, *machine, *settings)))


def _prompted_compiler(language: Language, for_gpu: bool) -> str:
    """Return what compiles a language's kernels on this host, with its version; empty if it is not known."""
    if language == "cpp" and not for_gpu:
        return gxx.version()
    if language == "triton":
        return f"Triton {metadata.version('triton')}"
    tools = hip.find() if language == "hip" else ""
    if isinstance(tools, str):
        return ""
    return (
        tools.version.replace("HIP version:", "hipcc, HIP")
        if tools.rocm
        else f"{tools.version} with headers of HIP 5.2 and what ROCm 6 added"
    )
