"""Prompts as a campaign on an MI300X gives them, where kernels are timed and the profiler counts beside it.

Problem, seeds and machine are the laboratory's own; times and counts are an example's, made up.
"""

import dataclasses
from collections.abc import Callable

from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.profile import metrics
from kernel_scientist.records.evaluation import Evaluation, Speedup, Timing, Trial
from kernel_scientist.records.gpu import Counters
from kernel_scientist.records.kernel import REFERENCE, Verdict, Work
from kernel_scientist.scientist.roles import Assignment, Lessons, Mind, Selection, Turn
from kernel_scientist.scientist.showcase import gpu

TOOL = "rocprofv3"


def assignment(predicted: Assignment) -> Assignment:
    """Return what a mind works on when the machine is there."""
    return dataclasses.replace(predicted, target="rocm", profile=predicted.problem.profile("full"))


def plays(mind: Mind, problem: Problem) -> dict[str, Callable[[], object]]:
    """Return the calls that render one prompt each, by the role that is asked."""
    trials = [_timed(problem, trial, speed) for trial, speed in zip(gpu.population(problem), (1, 5), strict=False)]
    population = Population(tuple(trials))
    selection = Selection(base="k00002", reference="k00001", rationale="k00002 is the best; k00001 is the other seed.")
    turn = Turn.of(0, "showcase", 1)
    return {
        "selector": lambda: mind.select(population, Lessons(), turn),
        "designer": lambda: mind.design(population, selection, Lessons(), turn),
    }


def _timed(problem: Problem, trial: Trial, speed: float) -> Trial:
    """Return a trial whose predictions have come true."""
    predictions = trial.evaluation.predictions
    times = [
        Timing(case=p.case, time_us=p.time_us, interval_us=(0.98 * p.time_us, 1.02 * p.time_us)) for p in predictions
    ]
    ratio = 2.2 * speed
    work = {case.name: problem.work(case) for case in problem.profile("full").benchmarks}
    evaluation = Evaluation(
        verdict=Verdict.OK,
        compile=trial.evaluation.compile,
        predictions=predictions,
        timings=tuple(times),
        speedups=(Speedup(against=REFERENCE, ratio=ratio, interval=(ratio * 0.97, ratio * 1.03)),),
        counters=tuple(_counted(case, it, 15 / speed) for case, it in work.items()),
    )
    return trial.model_copy(update={"evaluation": evaluation})


def _counted(case: str, work: Work, wasted: float) -> Counters:
    """Return what a profiler may have counted of a kernel that reads what it needs several times."""
    intensity = work.flops / work.bytes
    read, written = (0.4 + intensity / 2000) * wasted * work.bytes, 0.1 * work.bytes
    counts = {
        "SQ_INSTS_VALU": 9.0 * work.flops / 32768,
        "SQ_INSTS_MFMA": work.flops / 32768,
        "SQ_LDS_BANK_CONFLICT": 0.5e3,
        "SQ_LDS_IDX_ACTIVE": 2e3,
        "GRBM_GUI_ACTIVE": work.flops / 1e5,
        "TCC_HIT_sum": (2 + intensity / 300) * read / 128,
        "TCC_MISS_sum": read / 128,
        "TCC_BUBBLE_sum": read / 128,
        "TCC_EA0_RDREQ_sum": read / 128,
        "TCC_EA0_RDREQ_32B_sum": 0.0,
        "TCC_EA0_WRREQ_sum": written / 64,
        "TCC_EA0_WRREQ_64B_sum": written / 64,
        "SQ_INSTS_VALU_MFMA_MOPS_F8": work.flops / metrics.MATRIX_FLOP,
        "OccupancyPercent": 41.0,
    }
    return Counters(
        case=case, kernel="gemm_kernel", tool=TOOL, dispatches=1, counts=counts, figures=metrics.derive(TOOL, counts)
    )
