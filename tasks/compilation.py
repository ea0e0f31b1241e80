"""Compile a kernel and compare its outputs with the reference's."""

from typing import Any

from prefect import task
from prefect.cache_policies import CacheKeyFnPolicy
from prefect.transactions import get_transaction

from kernel_scientist.campaign import steps
from kernel_scientist.campaign.bench import Bench
from kernel_scientist.campaign.evaluation_context import cache_key
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel, Verdict, digest
from tasks import retries

PASSING = (Verdict.TIMEOUT, Verdict.CRASHED, Verdict.INFRASTRUCTURE)
"""Verdicts that may have their cause in the state of the machine: they are never served from a cache."""


def _key(_run: Any, arguments: dict[str, Any]) -> str | None:
    """Return the cache key, which depends on kernel, base, problem and toolchain; None: it is not cached.

    Confirmation never uses cached results, and a kernel may be skipped because of others.
    """
    if arguments.get("cases") is not None or arguments.get("skip") is not None:
        return None
    base: Evaluation | None = arguments.get("base")
    codes = [code.digest for code in base.compile.objects] if base is not None and base.compile is not None else []
    return cache_key(arguments["bench"], arguments["kernel"], "build") + (digest(repr(codes)) if codes else "")


OPTIONS: dict[str, Any] = {**retries.COMPILER, "cache_policy": CacheKeyFnPolicy(cache_key_fn=_key)}


@task(
    task_run_name="compile and check {kernel.name}",
    timeout_seconds=2400,
    result_serializer="json",
    **OPTIONS,
)
def compile_kernel(
    bench: Bench,
    kernel: Kernel,
    cases: tuple[Case, ...] | None = None,
    skip: steps.Skip | None = None,
    base: Evaluation | None = None,
) -> Evaluation:
    """Compile and check (see `steps.compile_kernel`); do not cache what may come from the state of the machine."""
    retries.pause(retries.COMPILER_S, bench.stopped)
    evaluation = steps.compile_kernel(bench, kernel, cases, skip, base)
    if evaluation.verdict in PASSING and (transaction := get_transaction()) is not None:
        transaction.write_on_commit = False
    return evaluation
