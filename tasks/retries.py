"""What another try can cure, how often a step is repeated, and the pause before. A kernel's own fault is never tried
again.

A condition is a plain function: Prefect silently ignores other callables as `retry_condition_fn`.
"""

import threading
from collections.abc import Sequence
from typing import Any

from prefect.cache_policies import NO_CACHE
from prefect.context import TaskRunContext

from kernel_scientist.records.errors import InfrastructureError, ModelError, StoppedError
from kernel_scientist.records.params import Llm

DEVICE_S, COMPILER_S = (5.0, 20.0), (1.0, 5.0)
"""Seconds before each repetition, by what failed."""
PROVIDER_REPETITIONS = 4


def provider_s(llm: Llm) -> Sequence[float]:
    """Return the seconds before each repetition of a model call, after all attempts of the LLM client.

    The last ones are as long as a model rests after failures in a row.
    """
    return (2 * llm.first_delay_s, 10 * llm.first_delay_s, llm.rest_s, llm.rest_s)


def _error(state: Any) -> BaseException | None:
    try:
        state.result()
    except BaseException as error:
        return error
    return None


def infrastructure_only(_task: Any, _run: Any, state: Any) -> bool:
    """Whether a step failed for reasons other than the kernel."""
    return isinstance(_error(state), InfrastructureError)


def provider_is_away(_task: Any, _run: Any, state: Any) -> bool:
    """Whether a model did not reply and may reply later: not after a refused request or a used-up budget."""
    error = _error(state)
    return isinstance(error, ModelError) and error.may_pass


def _options(retries: int, condition: Any) -> dict[str, Any]:
    return {
        "retries": retries,
        "retry_delay_seconds": 0,  # `pause` waits instead: Ctrl-C does not interrupt Prefect's own delay
        "retry_condition_fn": condition,
        "cache_policy": NO_CACHE,
    }


PROVIDER = _options(PROVIDER_REPETITIONS, provider_is_away)
DEVICE = _options(len(DEVICE_S), infrastructure_only)
DEVICE_ONCE: dict[str, Any] = {**DEVICE, "retries": 1}
COMPILER = _options(len(COMPILER_S), infrastructure_only)


def pause(pauses_s: Sequence[float], stopped: threading.Event) -> None:
    """Pause if the task that is running is a repetition. Raises StoppedError once `stopped` is set."""
    context = TaskRunContext.get()
    repetition = context.task_run.run_count - 1 if context else 0
    if repetition > 0 and stopped.wait(pauses_s[min(repetition, len(pauses_s)) - 1]):
        raise StoppedError("stopped by a signal")
