"""The steps of a flow as Prefect tasks: retries, caching, timeouts. Each body is one call into the package."""

from typing import Any

from kernel_scientist.records.errors import InfrastructureError


def infrastructure_only(_task: Any, _run: Any, state: Any) -> bool:
    """Retry infrastructure errors only, never a kernel that fails.

    A plain function: Prefect silently ignores other callables as `retry_condition_fn`.
    """
    try:
        state.result()
    except InfrastructureError:
        return True
    except BaseException:
        return False
    return False
