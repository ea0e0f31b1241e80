"""How far this machine's own noise goes: the same source timed against itself, kept for a day per problem.

A kernel counts as faster only beyond it. The A/A runs go through the very protocol that kernels go through, so the
margin covers what differs from process to process (memory layout, placement) as well as what differs from minute to
minute.
"""

import json
import time
from typing import TYPE_CHECKING

from kernel_scientist.compile.source import read_kernel
from kernel_scientist.evaluate.timing import schedule
from kernel_scientist.evaluate.timing.statistics import ratio
from kernel_scientist.hardware import cpu
from kernel_scientist.records import environment
from kernel_scientist.records.kernel import Kernel, Verdict, digest

if TYPE_CHECKING:
    from kernel_scientist.evaluate.evaluator import Evaluator, TimedSource

VALID_S, VALID_LARGE_S = 24 * 3600, 3600
LARGE = 0.03


def margins(evaluator: "Evaluator") -> tuple[float, ...]:
    """Return per look the larger of `harness.margin` and this machine's A/A noise.

    The noise is how far the interval of a source against itself came to lie beside 1, at the worst of the runs: the
    interval knows the spread of its own blocks, but not what differs between processes or minutes.

    Measured once a day per problem and settings, once an hour where it came out large: the machine was busy then. With
    `harness.noise_runs` 0 never.
    """
    harness = evaluator.harness
    floor = (harness.margin,) * harness.looks
    if harness.noise_runs == 0:
        return floor
    file = environment.cache_folder() / "noise" / f"{_key(evaluator)}.json"
    found: list[float] = json.loads(file.read_text())["margins"] if file.exists() else []
    if not found or time.time() - file.stat().st_mtime > (VALID_S if max(found) < LARGE else VALID_LARGE_S):
        found = measure(evaluator, harness.noise_runs)
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{time.monotonic_ns()}")
        part.write_text(json.dumps({"margins": found, "machine": cpu.model(), "problem": evaluator.problem.name}))
        part.replace(file)
    return tuple(max(a, b) for a, b in zip(floor, found, strict=True))


def measure(evaluator: "Evaluator", runs: int) -> list[float]:
    """Time a kernel against itself `runs` times, all looks each; return the noise after each look."""
    source = _subject(evaluator)
    plan = evaluator.plan(evaluator.profile.benchmarks, "first", None, margins=False)
    apart: list[list[float]] = [[] for _ in range(plan.looks)]
    for _ in range(runs):
        samples = schedule.run(evaluator, plan, [source.named("first"), source.named("second")])
        for look in range(plan.looks):
            ours, theirs = (samples.blocks_of(name)[: look + 1] for name in ("first", "second"))
            _, (low, high) = ratio(ours, theirs, plan.confidence)
            apart[look].append(max(low, 1 / high) - 1)
    return [max(0.0, *values) for values in apart]


def _subject(evaluator: "Evaluator") -> "TimedSource":
    """Return what is timed against itself: the problem's last right C++ seed, which is quick; else the reference."""
    from kernel_scientist.evaluate.evaluator import TimedSource

    for file in reversed(evaluator.problem.seeds("cpp")) if evaluator.pool.device == "cpu" else ():
        kernel = Kernel(name=file.stem, language="cpp", source=read_kernel(file))
        if evaluator.check(kernel, evaluator.compile(kernel)).verdict is Verdict.OK:
            return TimedSource.of(kernel)
    return evaluator.reference()


def _key(evaluator: "Evaluator") -> str:
    shop = evaluator.pool
    settings = evaluator.harness.model_dump_json(
        include={"blocks", "pairs", "looks", "threads", "warmup_calls", "sandbox"}
    )
    parts = (evaluator.problem.digest, evaluator.profile_name, cpu.model(), str(cpu.cores()), shop.device, settings)
    return digest("\0".join((*parts, shop.enclosure, environment.judge_digest())))[:32]
