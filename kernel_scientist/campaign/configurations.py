"""The search of a kernel's tunables, by the target of a campaign."""

import time
from collections.abc import Callable
from functools import partial

from kernel_scientist.campaign.bench import Bench
from kernel_scientist.campaign.plan import Plan
from kernel_scientist.campaign.target import TuningSearch
from kernel_scientist.compilers.fingerprint import fingerprint
from kernel_scientist.records.kernel import Kernel


def best(bench: Bench, plan: Plan, base: Kernel, name: str) -> Kernel | None:
    """Return the best configuration of a kernel as a kernel of that name; None if there is none or no time for it."""
    started = time.monotonic()

    def stop() -> bool:
        return bench.stopped.is_set() or plan.late() or plan.tuned_enough(time.monotonic() - started)

    def is_tried(source: str) -> bool:
        return plan.population.has_source(fingerprint(source))

    return bench.target.tune(search(bench, base, name, is_tried, stop, plan.tuning_s()))


def search(
    bench: Bench,
    base: Kernel,
    name: str,
    is_tried: Callable[[str], bool],
    stop: Callable[[], bool],
    seconds: float,
) -> TuningSearch:
    """Return the search of a kernel's tunables on a bench (see `TuningSearch`)."""
    device = partial(bench.device, f"tune {base.name}")
    return TuningSearch(base, name, is_tried, stop, seconds, bench.quiet.building, device)
