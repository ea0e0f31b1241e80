"""The steps of a flow, as Prefect tasks: what may be retried, cached, limited. Each body is a call into the domain."""

from typing import Any

from kernel_scientist.records.errors import InfrastructureError


def infrastructure_only(_task: Any, _run: Any, state: Any) -> bool:
    """Retry what can pass the second time; never a kernel that is wrong.

    A plain function: Prefect ignores any other callable here without a word.
    """
    try:
        state.result()
    except InfrastructureError:
        return True
    except BaseException:
        return False
    return False
