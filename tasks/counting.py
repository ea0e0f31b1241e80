"""Count what a kernel did, under the vendor's profiler: never a verdict, never a time."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.evaluation_context import EvaluationContext
from kernel_scientist.profile import counting
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel
from tasks.timing import device


@task(
    task_run_name="count {kernel.name}",
    timeout_seconds=1800,  # the domain has its own limit; this one is for waiting for the device
    cache_policy=NO_CACHE,  # it belongs to the times beside it
)
def count_kernel(lab: EvaluationContext, kernel: Kernel, timed: Evaluation) -> Evaluation:
    """Add what the GPU's counters say, alone on the device; where they say nothing, why."""
    try:
        with device(lab):
            return counting.count(lab.evaluator, kernel, timed)
    except InfrastructureError as error:  # nothing depends on it, so nothing is tried again
        return counting.without(timed, str(error))


def counted(lab: EvaluationContext, kernel: Kernel, timed: Evaluation) -> Evaluation:
    """Count where there is something to count: on a GPU, of a kernel that was timed."""
    return count_kernel(lab, kernel, timed) if counting.wanted(lab.evaluator, timed) else timed
