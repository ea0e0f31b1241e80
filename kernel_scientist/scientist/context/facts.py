"""Facts about problem, machine and kernels for the prompt templates: pure functions of records, rounded for reading."""

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernel_scientist.hardware import measured
from kernel_scientist.hardware.cpu import instruction_sets
from kernel_scientist.hardware.peaks import (
    BYTES_PER_CLOCK,
    CPU_CLOCK_GHZ,
    Machine,
    floor_limit,
    floor_us,
    native_operations,
    roofline_limit,
    roofline_us,
)
from kernel_scientist.population.entry import order, over_base, score
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Trial, geomean
from kernel_scientist.records.kernel import REFERENCE, Verdict, Work
from kernel_scientist.scientist.context import gpu_facts
from kernel_scientist.scientist.context.outcomes import NOT_PAIRED, conditions, fastest, outcome, spread, title
from kernel_scientist.scientist.context.problem_facts import as_reference
from kernel_scientist.scientist.prompts import rounded_us
from kernel_scientist.scientist.proposals import missing
from kernel_scientist.scientist.roles import Assignment, CpuInfo

MOST_KERNELS = 60
"""Rows of the table of all kernels."""
MOST_PLACES = 1000
"""Fastest kernels whose place in the order is told."""
MOST_DIFF, MOST_EVIDENCE = 4000, 6000
"""Characters of a diff, of a failure's evidence."""
LEAST_LINE = 20
"""Characters of a line that counts as told if it is part of another one."""


def machine(assignment: Assignment) -> list[str]:
    """Return the machine's properties, one per line."""
    if assignment.gpu is not None:
        compiled = [f"kernels are compiled by {assignment.compiler}"] if assignment.compiler else []
        return [*gpu_facts.machine(assignment.gpu, assignment.by_model), *compiled]
    if not math.isfinite(assignment.peaks.memory_gbps):
        return [f"{assignment.peaks.name}; its peaks and caches are not known here, so there are no roofline floors"]
    cpu = assignment.cpu
    name = ", ".join(part for part in (cpu.model, cpu.generation, cpu.clock) if part)
    return [
        f"{name}; {_cores(cpu)}; caches: {_caches(cpu) or 'unknown'}",
        f"vector registers of {cpu.vector_bytes} bytes; instruction sets: "
        f"{', '.join(instruction_sets(cpu.features)) or 'none listed'}",
        *measured.described(peaks := cpu.measured or measured.kept(cpu.model, cpu.cores)),
        *(
            []
            if peaks
            else [*_computed(cpu), "state a gain from fewer bytes in bytes, not as a time from the floor's rates"]
        ),
        f"{assignment.compiler or 'g++'}, C++20, OpenMP with {cpu.cores} threads by default (`omp_get_max_threads()`); "
        "these threads, which torch's operators use too, exist before the timed calls",
        "each tensor with memory of its own begins at a multiple of 64 bytes, those of `data` and those that torch "
        "allocates; rows within it may not",
        "a time is the wall time per call, Python code included, of calls in a row, each on inputs of its own",
    ]


def operators(assignment: Assignment) -> str:
    """Return the shares of the reference's operators as text; empty if they are not known."""
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in assignment.operators.items())


def _cores(cpu: CpuInfo) -> str:
    """Return how many cores may be used, or how many hyperthreads of them."""
    if cpu.physical in (0, cpu.cores):
        return f"{cpu.cores} cores may be used"
    one = cpu.physical == 1
    return (
        f"{cpu.cores} logical CPUs may be used, hyperthreads of {cpu.physical} core{'' if one else 's'}: "
        "those of one core share its vector and matrix units, L1 and L2"
    )


def _caches(cpu: CpuInfo) -> str:
    shared = {level: " for several cores" if level in cpu.shared else " per core" for level in cpu.caches}
    return ", ".join(
        f"{level} {size >> 10} KiB{shared[level] if cpu.shared else ''}" for level, size in cpu.caches.items()
    )


def _computed(cpu: CpuInfo) -> list[str]:
    """Return an x86 core's arithmetic by type at its clock; empty if that is not known."""
    if "asimd" in cpu.features or not (clock := re.match(r"[\d.]+", cpu.clock)):
        return []
    rates = native_operations(cpu.features, cpu.vector_bytes)
    listed = ", ".join(f"{name} {rate * float(clock[0]):.0f}" for name, rate in rates.items())
    return [
        f"computed for one core at {clock[0]} GHz, in GFLOP/s at most: {listed}; a multiplication with its addition "
        "is two"
    ]


def selection(assignment: Assignment, population: Population) -> dict[str, Any]:
    """Return all kernels for the selector: without code, slow and old ones without fast children left out."""
    cases = [case.name for case in assignment.profile.benchmarks]
    trials = population.latest(MOST_KERNELS if len(population) <= MOST_KERNELS else MOST_KERNELS // 2)
    if len(population) > MOST_KERNELS:
        leaders = population.ranking(MOST_KERNELS // 2)
        names = {name for entry in leaders for name in (entry.name, entry.base) if name}
        names |= {t.kernel.name for t in trials}
        trials = [population.get(name) for name in sorted(names, key=order)]
    bound = floor_us if assignment.gpu is None else roofline_us
    floors = {c.name: bound(assignment.problem.work(c), assignment.peaks) for c in assignment.profile.benchmarks}
    floors = {case: us for case, us in floors.items() if us}
    published = {case: p.us for case, p in assignment.published.items() if case in cases}
    places = {entry.name: place for place, entry in enumerate(population.ranking(MOST_PLACES), start=1)}
    best = population.best()
    return {
        "cases": cases,
        "kernels": [_row(t, cases, places) for t in trials],
        "incumbent": f"{best.kernel.name} is {fastest(best)}" if best else "",
        "confidence": f"{100 * assignment.confidence:g} %",
        "conditions": conditions(population),
        "left_out": len(population) - len(trials),
        "limited": any(t.evaluation.predictions for t in trials),
        "floors": _cells(floors, cases) if floors else [],
        "published": _cells(published, cases) if published else [],
        "counters": gpu_facts.counter_rows(population.ranked(MOST_KERNELS)),
        "provenance": gpu_facts.provenance(trials),
        "seed_is_reference": any(as_reference(assignment.problem, t)["is_reference"] for t in trials),
    }


def _row(trial: Trial, cases: Sequence[str], places: Mapping[str, int]) -> dict[str, Any]:
    test, base = trial.evaluation.test, over_base(trial)
    own = trial.evaluation.speedup_over(REFERENCE)
    rival = test if test and test.against not in (REFERENCE, trial.kernel.base) else None
    place, verdict = places.get(trial.kernel.name), trial.evaluation.verdict
    return {
        "name": trial.kernel.name,
        "base": trial.kernel.base or ("seed" if trial.kernel.is_seed else "earlier campaign"),
        "reference": trial.kernel.reference,
        "title": title(trial),
        "verdict": "no kernel was sent" if verdict is Verdict.ABSENT else verdict.value,
        "place": place or (f"> {MOST_PLACES}" if score(trial) else "-"),
        "over_base": str(base) if base else NOT_PAIRED if own and trial.kernel.base else "-",
        "over_incumbent": f"{rival} over {rival.against}"
        if rival
        else "(its base)"
        if test and test.against == trial.kernel.base
        else "-",
        "speedup": str(own) if own else "-",
        "limits": gpu_facts.limit_counts(trial),
        "times": _cells(trial.evaluation.times_us, cases),
    }


def _cells(times_us: Mapping[str, float], cases: Sequence[str]) -> list[str]:
    """Return the geometric mean of the times and each of them; `-` for a missing one, and then for the mean."""
    known = [times_us[case] for case in cases if times_us.get(case)]
    mean = rounded_us(geomean(known)) if len(known) == len(cases) else "-"
    return [mean, *(rounded_us(times_us[case]) if case in times_us else "-" for case in cases)]


def kernel(population: Population, trial: Trial) -> dict[str, Any]:
    """Return a kernel, the experiment that produced it and what came of it."""
    return {
        "name": trial.kernel.name,
        "base": trial.kernel.base,
        "source": trial.kernel.source,
        "experiment": trial.kernel.experiment,
        "origin": trial.kernel.origin,
        "tuned": trial.kernel.tuned_from is not None,
        "report": trial.kernel.report if trial.kernel.experiment else "",
        "title": title(trial),
        "spread": spread(population, trial),
        "outcome": outcome(population, trial),
        "code": gpu_facts.resources(trial),
        "limits": gpu_facts.limit_shares(trial),
        "planned": trial.evaluation.verdict in (Verdict.DECLINED, Verdict.ABSENT),
    }


def case_table(assignment: Assignment, population: Population, trials: Iterable[Trial]) -> dict[str, Any]:
    """Return the times of some kernels beside floors and best published times.

    `columns`: the kernels' names. `rows`: the geometric mean, then one row per timed case. `sources`:
    those of the published times. `floors`: what the floors are bounds of; empty if there are none. `rates`: those of a
    CPU's floors. `confidence`: of the gains' intervals.
    """
    columns = {t.kernel.name: t.evaluation.times_us for t in trials}
    works = {c.name: assignment.problem.work(c) for c in assignment.profile.benchmarks}
    bound, limit = (floor_us, floor_limit) if assignment.gpu is None else (roofline_us, roofline_limit)
    floors = {case: us for case, work in works.items() if (us := bound(work, assignment.peaks))}
    published = {case: p for case, p in assignment.published.items() if case in works}
    cells = [_cells(c, [*works]) for c in columns.values()]
    times = [[column[row] for column in cells] for row in range(1 + len(works))]
    bounds = ["", *(limit(work, assignment.peaks) for work in works.values())]
    known = _cells({case: p.us for case, p in published.items()}, [*works])
    reachable = _reachable(assignment, works) if floors else {}
    measured_us = [[column[row] for column in reachable.values()] for row in range(1 + len(works))]
    rows = zip(["geometric mean", *works], times, _cells(floors, [*works]), bounds, measured_us, known, strict=True)
    names = "case", "times", "floor", "bound", "reachable", "published"
    return {
        "columns": list(columns),
        "reachable": list(reachable),
        "rows": [dict(zip(names, row, strict=True)) for row in rows],
        "confidence": f"{100 * assignment.confidence:g} %",
        "conditions": conditions(population),
        "floors": _floors(assignment) if floors else "",
        "rates": _rates(assignment.peaks) if floors and assignment.gpu is None else "",
        "sources": list(dict.fromkeys(p.origin for p in published.values())),
    }


def _reachable(assignment: Assignment, works: Mapping[str, Work]) -> dict[str, list[str]]:
    """Return the times of each case's bytes and operations at a CPU's measured rates; empty if nothing was measured."""
    cpu = assignment.cpu
    if assignment.gpu is not None or (peaks := cpu.measured or measured.kept(cpu.model, cpu.cores)) is None:
        return {}
    times = {"bytes": {case: work.bytes / peaks.memory_gbps * 1e-3 for case, work in works.items()}}
    for name in ("fp32", "bf16"):
        if rate := peaks.gflops.get(name):
            times[f"{name} arithmetic"] = {case: work.flops / rate * 1e-3 for case, work in works.items()}
    return {name: _cells(of, [*works]) for name, of in times.items()}


def _rates(peaks: Machine) -> str:
    """Return the rates from which a CPU's floors are computed."""
    rate, gbps = peaks.most_gflops, peaks.bound_gbps or peaks.memory_gbps
    return (
        f"It assumes {rate / 1000:.3g} TFLOP/s (the fastest unit, of any type) and {gbps:.0f} GB/s (into the "
        f"registers, {BYTES_PER_CLOCK} bytes a clock), at {CPU_CLOCK_GHZ} GHz, a clock above any that is sold, and as "
        "if each logical CPU were a core. Do not compute gains from them."
    )


def _floors(assignment: Assignment) -> str:
    """Return what the floors are: bounds for the problem's work, or the reference's, or a GPU's nominal roofline."""
    if not assignment.problem.work_is_least:
        return "reference"
    return "nominal" if assignment.gpu is not None or not assignment.peaks.certain else "problem"


def code(assignment: Assignment, trial: Trial) -> list[str]:
    """Return what is known of a kernel's machine code, for the target's GPU or a CPU; empty if nothing is."""
    return gpu_facts.code(assignment.gpu, trial) if assignment.gpu else instructions(trial)


def instructions(trial: Trial) -> list[str]:
    """Return code size, instruction counts and hot loop of a CPU kernel; empty if they are unknown."""
    report = trial.evaluation.compile
    if report is None or not report.instructions:
        return []
    counts = ", ".join(f"{n} {kind}" for kind, n in sorted(report.instructions.items(), key=lambda p: -p[1]))
    lines = [f"{report.code_bytes or '?'} bytes of code; instructions by class: {counts}"]
    if report.hot_loop:
        lines.append(f"innermost loop with the most vector work: {'; '.join(report.hot_loop.splitlines())}")
    return lines


def change(before: str, after: str, context: int = 3) -> str:
    """Return a unified diff, or the new file if that is shorter."""
    diff = "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), n=context, lineterm=""))
    return diff if len(diff) < len(after) else after


def failed_change(population: Population, trial: Trial) -> str:
    """Return the diff of a failed kernel to its base, as what it does may not be what was planned; empty if it is long,
    or if there is no kernel."""
    if trial.evaluation.verdict is Verdict.OK or trial.kernel.base is None or missing(trial.kernel.source):
        return ""
    before, after = population.get(trial.kernel.base).kernel.source, trial.kernel.source
    diff = change(before, after, context=1)
    return diff if diff != after and len(diff) <= MOST_DIFF else ""


def relatives(population: Population, trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """Return a row per related kernel, with its diff to its base unless that is long."""
    rows: list[dict[str, Any]] = []
    for trial in trials:
        base = population.get(trial.kernel.base).kernel.source if trial.kernel.base else ""
        diff = change(base, trial.kernel.source, context=2) if base and not missing(trial.kernel.source) else ""
        row = {"name": trial.kernel.name, "base": trial.kernel.base or "nothing", "title": title(trial)}
        rows.append(
            {
                **row,
                "outcome": outcome(population, trial),
                "diff": diff if len(diff) <= MOST_DIFF else "",
                "whole": diff == trial.kernel.source,
            }
        )
    return rows


def evidence(trial: Trial) -> str:
    """Return the evidence of a failure: reason, compiler log, differences, last output; long texts lose their middle.

    A line that an earlier part has is left out: a log is also part of the reason and of a traceback.
    """
    evaluation = trial.evaluation
    log = evaluation.compile.log if evaluation.compile and not evaluation.compile.ok else ""
    kept, seen = list[str](), set[str]()
    for part in (evaluation.reason, log, *evaluation.evidence):
        lines = _shortened(part.strip()).splitlines()
        kept += [line for line in lines if line.strip() and not _is_told(line.strip(), seen)]
        seen |= {line.strip() for line in lines}
    return _shortened("\n".join(kept))


def _is_told(line: str, seen: set[str]) -> bool:
    """Whether a line, with or without words before it, was told."""
    return line in seen or any(line in old or old in line for old in seen if min(len(line), len(old)) >= LEAST_LINE)


def _shortened(text: str) -> str:
    if len(text) <= MOST_EVIDENCE:
        return text
    half = MOST_EVIDENCE // 2
    return f"{text[:half]}\n... ({len(text) - MOST_EVIDENCE} characters) ...\n{text[-half:]}"
