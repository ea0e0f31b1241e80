"""Time kernels of different campaigns against each other: what they recorded is of different runs."""

from collections.abc import Sequence

from kernel_scientist.campaign import preflight, single
from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Speedup
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Params

FIRST, SECOND = "first", "second"
"""Names of the two kernels while they are timed: kernels of two campaigns may have one name."""


def timed(params: Params, pairs: Sequence[tuple[Kernel, Kernel]]) -> tuple[list[Speedup | None], str]:
    """Time the two kernels of each pair in one run: return the first's speedup over the second, None if one failed.

    Also returns the reason why there is none; it is empty if all were timed. Nothing is timed where the target's device
    is not on this host.
    """
    if not pairs:
        return [], ""
    here = params.model_copy(update={"language": pairs[0][0].language})
    try:
        _, address = preflight.resolve(here)
        if reason := address.why_not_paired:
            return [], reason
        with evaluation_context(here) as context:
            context.target.forgo_noise()
            found = [_pair(context, *pair) for pair in pairs]
    except SetupError as error:
        return [], str(error)
    return [speedup for speedup, _ in found], next((reason for _, reason in found if reason), "")


def _pair(context: EvaluationContext, one: Kernel, other: Kernel) -> tuple[Speedup | None, str]:
    kernel = Kernel(name=FIRST, language=one.language, source=one.source)
    against = [context.target.reference(), TimedSource(name=SECOND, source=other.source)]
    evaluation = single.evaluated(context, kernel, against)
    if evaluation.verdict is not Verdict.OK:
        return None, f"{one.name}: {evaluation.verdict.value}: {evaluation.reason}"
    speedup = evaluation.speedup_over(SECOND)
    return speedup, "" if speedup else evaluation.reason
