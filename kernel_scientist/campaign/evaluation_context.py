"""What a kernel is judged with, open for the time of a flow."""

import math
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from kernel_scientist.campaign import preflight
from kernel_scientist.compile import extension_builder, gxx
from kernel_scientist.evaluate.evaluator import Evaluator
from kernel_scientist.gpu.model import constants
from kernel_scientist.hardware import gpu, gpus
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.hardware.targets import Target
from kernel_scientist.problems import admission
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.kernel import Kernel, Language, digest
from kernel_scientist.records.params import Params
from kernel_scientist.scientist.context import knowledge
from kernel_scientist.scientist.roles import Assignment, Facts
from kernel_scientist.workers.pool import WorkerPool

UNKNOWN = Machine("a GPU in no table", math.inf, {"fp32": math.inf}, "nobody")
"""Peaks that make every floor zero: no claim is better than a wrong one."""


@dataclass(frozen=True)
class EvaluationContext:
    """What a kernel is judged with: problem, target, evaluator."""

    params: Params
    problem: Problem
    target: Target
    evaluator: Evaluator

    def assignment(self) -> Assignment:
        """Return what a mind works on here."""
        settings = self.params.knowledge
        return Assignment(
            problem=self.problem,
            profile=self.evaluator.profile,
            language=self.params.language,
            target=self.target.name,
            facts=Facts.here(),
            peaks=self.evaluator.machine or UNKNOWN,
            gpu=self.evaluator.machine if isinstance(self.evaluator.machine, Gpu) else None,
            knowledge=knowledge.load([environment.root() / path for path in settings.paths]),
            knowledge_tokens=settings.tokens,
            most_findings=settings.findings,
        )


@contextmanager
def evaluation_context(params: Params) -> Generator[EvaluationContext]:
    """Open the judge for the parameters' problem and target; end its workers on the way out.

    Raises SetupError for an unknown problem, profile or target, a missing compiler, or a problem unfit to judge by.
    """
    problem, target = preflight.resolve(params)
    interpreted = params.language == "triton" and target.device == "cpu"
    preload = ("kernel_scientist.gpu.interpreter.worker_setup",) if interpreted else ()
    stage = _stage(problem, target) if interpreted else None
    with WorkerPool(params.harness, target.device, preload, stage) as pool:
        admission.require(problem, params.profile)
        evaluator = _judge(params, problem, target, pool)
        yield EvaluationContext(params, problem, target, evaluator)


def _stage(problem: Problem, target: Target) -> dict[str, Any]:
    """Return what interpreted kernels run on: this machine, or a GPU that is pretended."""
    from kernel_scientist.gpu.capture import inspect

    facts = asdict(inspect.facts(target.model)) if target.model else None
    return {"facts": facts, "writes": problem.writes}


def _judge(params: Params, problem: Problem, target: Target, pool: WorkerPool) -> Evaluator:
    gpu = target.model or gpus.here(target.device)
    if gpu is None or params.language == "cpp":
        return Evaluator(problem, params.profile, params.harness, pool)
    from kernel_scientist.evaluate.predicted import Foreseeing, Modeller

    judge = Modeller if target.model else Foreseeing
    return judge(problem, params.profile, params.harness, pool, gpu)


def _device(target: Target) -> str:
    """Return what tells a GPU, and what drives it, from another; nothing for a CPU, which `gxx.processor` tells."""
    if target.model is not None:
        return f"model {target.model.name} {constants.of(target.model.name)}"
    if target.device == "cpu":
        return ""
    import torch

    name, known = torch.cuda.get_device_name(target.device), gpus.here(target.device)
    fitted = str(constants.of(known.name)) if known else ""
    return f"{name} {torch.version.hip} {torch.version.cuda} {gpu.state().get('driver', '')} {fitted}"


def _compiler(language: Language, target: Target) -> str:
    """Return the version of what compiles kernels beside torch and triton; nothing where that is all."""
    if language == "cpp":
        return gxx.version()
    built = language != "triton" and target.device != "cpu"
    return extension_builder.find(gpu=True).version if built else ""


def cache_key(lab: EvaluationContext, kernel: Kernel, step: str) -> str:
    """Return what a step's result depends on: problem, kernel, toolchain, device, harness."""
    parts = (step, lab.problem.digest, lab.params.profile, kernel.digest, kernel.language, lab.target.name)
    machine = (gxx.processor(), _compiler(kernel.language, lab.target), environment.judge_digest())
    machine += (metadata.version("torch"), metadata.version("triton"), _device(lab.target))
    settings = (lab.params.harness.model_dump_json(), str(environment.cache_folder()))
    return f"{step}-{digest(chr(0).join((*parts, *machine, *settings)))}"
