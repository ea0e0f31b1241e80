"""Search the tunables of a kernel."""

from collections.abc import Callable

from prefect import task

from kernel_scientist.campaign.bench import Bench
from kernel_scientist.records.kernel import Kernel
from tasks import retries


@task(
    task_run_name="tune {kernel.name}",
    timeout_seconds=4 * 3600,  # includes waiting for the device
    **retries.DEVICE_ONCE,
)
def tune_kernel(bench: Bench, kernel: Kernel, search: Callable[[], Kernel | None]) -> Kernel | None:
    """Return what `search` finds: the best other configuration of `kernel`, or None when there was none to try."""
    retries.pause(retries.DEVICE_S, bench.stopped)
    return search()
