"""The bars to beat: reference and seeds, timed together."""

from pathlib import Path
from typing import Any

from kernel_scientist.campaign.evaluation_context import evaluation_context
from kernel_scientist.compile.source import read_kernel
from kernel_scientist.problems import frozen
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.records.params import Params
from kernel_scientist.report.summaries import interval
from kernel_scientist.sandbox import device_lock


def measure(params: Params, cases: Path) -> dict[str, Any]:
    """Check the frozen cases, then evaluate every seed beside the reference; return medians and ratios."""
    with evaluation_context(params) as lab:
        checked = frozen.verify(lab.problem, params.profile, cases)
        seeds: list[dict[str, Any]] = []
        for file in lab.problem.seeds(params.language):
            kernel = Kernel(name=file.stem, language=params.language, source=read_kernel(file))
            evaluation = lab.evaluator.check(kernel, lab.evaluator.compile(kernel))
            with device_lock.device(lab.target.lock, params.harness.device_wait_s):
                evaluation = lab.evaluator.time(kernel, evaluation, [lab.evaluator.reference()])
            if evaluation.verdict is not Verdict.OK:
                raise InfrastructureError(f"seed {file}: {evaluation.verdict.value}: {evaluation.reason}")
            seeds.append(_row(kernel.name, evaluation))
        return {"problem": lab.problem.name, "target": lab.target.name, "frozen_cases": checked, "seeds": seeds}


def _row(name: str, evaluation: Evaluation) -> dict[str, Any]:
    speedup = evaluation.speedup_over(REFERENCE)
    return {
        "kernel": name,
        "geomean_us": round(evaluation.geomean_us or 0, 2),
        "speedup": round(speedup.ratio, 4) if speedup else None,
        "interval": interval(speedup) if speedup else None,
    }
