"""Reports about a problem: its description, and the times of its reference and seeds."""

from pathlib import Path
from typing import Any

from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.compile.source import read_kernel
from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.hardware.peaks import floor_us
from kernel_scientist.problems import frozen
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.records.params import Params
from kernel_scientist.report.summaries import rounded
from kernel_scientist.sandbox import device_lock


def describe(problem: Problem) -> dict[str, Any]:
    """Return text, seeds and, per profile, cases with their work and their roofline floor on MI300X (predicted)."""
    return {
        "problem": problem.name,
        "folder": str(problem.folder),
        "description": problem.description.strip(),
        "seeds": [f.name for f in sorted((problem.folder / "seeds").glob("*.py"))],
        **{f"profile {name}": _cases(problem, name) for name in problem.profiles},
    }


def _cases(problem: Problem, profile: str) -> list[dict[str, Any]]:
    cases = [(use, c) for use in ("tests", "benchmarks", "held_out") for c in getattr(problem.profile(profile), use)]
    return [
        {
            "use": use,
            "case": case.name,
            "gflop": work.flops / 1e9,
            "mbyte": work.bytes / 1e6,
            "mi300x_floor_us (predicted)": floor_us(work, MI300X),
        }
        for use, case in cases
        for work in (problem.work(case),)
    ]


def baseline(params: Params, cases: Path) -> dict[str, Any]:
    """Verify the frozen cases, then time every seed against the reference.

    Raises InfrastructureError for a seed that is not correct.
    """
    with evaluation_context(params) as context:
        verified = frozen.verify(context.problem, params.profile, cases)
        return {
            "problem": context.problem.name,
            "target": context.target.name,
            "frozen_cases": verified,
            "seeds": [_seed(context, file) for file in context.problem.seeds(params.language)],
        }


def _seed(context: EvaluationContext, file: Path) -> dict[str, Any]:
    """Check a seed and time it against the reference."""
    evaluator = context.evaluator
    kernel = Kernel(name=file.stem, language=context.params.language, source=read_kernel(file))
    evaluation = evaluator.check(kernel, evaluator.compile(kernel))
    with device_lock.device(context.target.lock, context.params.harness.device_wait_s):
        evaluation = evaluator.time(kernel, evaluation, [evaluator.reference()])
    if evaluation.verdict is not Verdict.OK:
        raise InfrastructureError(f"seed {file}: {evaluation.verdict.value}: {evaluation.reason}")
    speedup = evaluation.speedup_over(REFERENCE)
    if speedup is None:
        return {"kernel": kernel.name, "geomean_us": rounded(evaluation.geomean_us), "speedup": None}
    time_us, reference_us = rounded((speedup.time_us, speedup.against_us))
    return {
        "kernel": kernel.name,
        "geomean_us": time_us,
        "reference_us": reference_us,
        "speedup": reference_us / time_us,
        "interval": rounded(speedup.interval) if speedup.resolved else None,
    }
