"""Reports about a problem: its description, and the times of its reference and seeds."""

from pathlib import Path
from typing import Any

from kernel_scientist.campaign.evaluation_context import evaluation_context
from kernel_scientist.compile.source import read_kernel
from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.hardware.peaks import floor_us
from kernel_scientist.problems import frozen
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.records.params import Params
from kernel_scientist.report.summaries import interval, rounded
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
    chosen = problem.profile(profile)
    rows: list[dict[str, Any]] = []
    for use in ("tests", "benchmarks", "held_out"):
        for case in getattr(chosen, use):
            work = problem.work(case)
            rows.append(
                {
                    "use": use,
                    "case": case.name,
                    "gflop": work.flops / 1e9,
                    "mbyte": work.bytes / 1e6,
                    "mi300x_floor_us (predicted)": floor_us(work, MI300X),
                }
            )
    return rows


def baseline(params: Params, cases: Path) -> dict[str, Any]:
    """Verify the frozen cases, then time every seed against the reference.

    Raises InfrastructureError for a seed that is not correct.
    """
    with evaluation_context(params) as context:
        verified = frozen.verify(context.problem, params.profile, cases)
        seeds: list[dict[str, Any]] = []
        for file in context.problem.seeds(params.language):
            kernel = Kernel(name=file.stem, language=params.language, source=read_kernel(file))
            evaluation = context.evaluator.check(kernel, context.evaluator.compile(kernel))
            with device_lock.device(context.target.lock, params.harness.device_wait_s):
                evaluation = context.evaluator.time(kernel, evaluation, [context.evaluator.reference()])
            if evaluation.verdict is not Verdict.OK:
                raise InfrastructureError(f"seed {file}: {evaluation.verdict.value}: {evaluation.reason}")
            seeds.append(_seed(kernel.name, evaluation))
        return {
            "problem": context.problem.name,
            "target": context.target.name,
            "frozen_cases": verified,
            "seeds": seeds,
        }


def _seed(name: str, evaluation: Evaluation) -> dict[str, Any]:
    speedup = evaluation.speedup_over(REFERENCE)
    if speedup is None or not speedup.cases:
        return {"kernel": name, "geomean_us": rounded(evaluation.geomean_us), "speedup": None}
    time_us, reference_us = float(f"{speedup.time_us:.6g}"), float(f"{speedup.against_us:.6g}")
    return {
        "kernel": name,
        "geomean_us": time_us,
        "reference_us": reference_us,
        "speedup": reference_us / time_us,
        "interval": interval(speedup),
    }
