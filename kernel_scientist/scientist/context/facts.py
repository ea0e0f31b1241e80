"""Facts about problem, machine and kernels for the prompt templates: pure functions of records, rounded for reading."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from kernel_scientist.compile.source import KernelSource
from kernel_scientist.hardware.peaks import floor_us
from kernel_scientist.population import prediction_accuracy
from kernel_scientist.population.entry import order, score
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.taskfolder import Problem, Profile
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE, Verdict
from kernel_scientist.scientist.context import gpu_facts
from kernel_scientist.scientist.prompts import rounded_us
from kernel_scientist.scientist.roles import Assignment

MOST_TRIED, MOST_KERNELS, MOST_PREDICTIONS = 30, 60, 100
"""Rows of a table: earlier experiments on a kernel, all kernels; the latest kernels whose predictions are judged."""
MOST_DIFF, MOST_REASON, MOST_EVIDENCE = 4000, 300, 6000
"""Characters of a diff, of a reason in a table, of a failure's evidence."""
INSTRUCTION_SETS = frozenset(
    ("avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "avx512_vnni", "amx_bf16", "asimd", "sve")
)
"""Those named in prompts."""


def problem(problem: Problem, profile: Profile) -> dict[str, Any]:
    """Return the problem's description, reference, cases and rules."""
    policy = problem.policy
    rules = [
        "" if policy.library else "No library (torch, BLAS) may do the work.",
        "" if policy.threads else "Only one thread may be used.",
        "" if policy.graphs else "Graphs may not be replayed.",
        f"Inputs {', '.join(map(str, policy.static))} stay the same from call to call." if policy.static else "",
    ]
    return {
        "name": problem.name,
        "description": problem.description,
        "reference": (problem.folder / "reference.py").read_text(),
        "tests": [c.name for c in profile.tests],
        "varied": ", ".join(f"{k} {a}-{b} (step {s})" for k, (a, b, s) in profile.vary.items()),
        "benchmarks": [c.name for c in profile.benchmarks],
        "policy": " ".join(r for r in rules if r),
    }


def machine(assignment: Assignment) -> list[str]:
    """Return the machine's properties, one per line."""
    if assignment.gpu is not None:
        return gpu_facts.machine(assignment.gpu, assignment.target)
    cpu = assignment.cpu
    caches = ", ".join(f"{level} {size >> 10} KiB" for level, size in cpu.caches.items())
    return [
        f"{cpu.model}, {cpu.cores} cores may be used; caches: {caches or 'unknown'}",
        f"vector registers of {cpu.vector_bytes} bytes; instruction sets: "
        f"{', '.join(sorted(INSTRUCTION_SETS & cpu.features)) or 'none listed'}",
        "g++, C++20, OpenMP; the OpenMP threads exist before the timed calls",
        "a time is the wall time per call, Python code included, of calls in a row, each on inputs of its own",
    ]


def times(trial: Trial) -> dict[str, float]:
    """Return a kernel's time per case in us: measured, or predicted on a model target."""
    evaluation = trial.evaluation
    if evaluation.by_model:
        return {p.case: p.time_us for p in evaluation.predictions}
    return {t.case: t.time_us for t in evaluation.timings}


def kernel_table(population: Population, cases: Sequence[str]) -> tuple[list[dict[str, Any]], int]:
    """Return a row per kernel, without code, and the number of rows left out: slow, old and without fast children."""
    trials = population.latest(MOST_KERNELS if len(population) <= MOST_KERNELS else MOST_KERNELS // 2)
    if len(population) > MOST_KERNELS:
        leaders = population.ranking(MOST_KERNELS // 2)
        names = {name for entry in leaders for name in (entry.name, entry.base) if name}
        names |= {t.kernel.name for t in trials}
        trials = [population.get(name) for name in sorted(names, key=order)]
    return [_row(t, cases) for t in trials], len(population) - len(trials)


def _row(trial: Trial, cases: Sequence[str]) -> dict[str, Any]:
    times_us = times(trial)
    return {
        "name": trial.kernel.name,
        "base": trial.kernel.base,
        "reference": trial.kernel.reference,
        "title": title(trial),
        "verdict": trial.evaluation.verdict.value,
        "speedup": f"{score(trial):.3g}" if score(trial) else "-",
        "times": [rounded_us(times_us[c]) if c in times_us else "-" for c in cases],
    }


def kernel(population: Population, trial: Trial) -> dict[str, Any]:
    """Return a kernel, the experiment that produced it, and its times before and after that experiment."""
    base = population.get(trial.kernel.base) if trial.kernel.base else None
    before = times(base) if base else {}
    return {
        "name": trial.kernel.name,
        "base": trial.kernel.base,
        "source": trial.kernel.source,
        "experiment": trial.kernel.experiment,
        "report": trial.kernel.report if trial.kernel.experiment else "",
        "gain": gain(population, trial),
        "outcome": outcome(population, trial),
        "times": [
            {"case": case, "before": rounded_us(before[case]), "after": rounded_us(us)}
            for case, us in times(trial).items()
            if case in before
        ],
    }


def roofline(assignment: Assignment, trial: Trial) -> list[dict[str, Any]]:
    """Return per case the time, the roofline floor, their quotient, and the predicted limits if there are any."""
    rows = list[dict[str, Any]]()
    times_us, predictions = times(trial), {p.case: p for p in trial.evaluation.predictions}
    for case in assignment.profile.benchmarks:
        if (time_us := times_us.get(case.name)) is None:
            continue
        work = assignment.problem.work(case)
        floor = floor_us(work, assignment.peaks)
        memory_us = work.bytes / assignment.peaks.memory_gbps * 1e-3
        rows.append(
            {
                "case": case.name,
                "time_us": time_us,
                "floor_us": floor,
                "percent": f"{100 * floor / time_us:.2g}",
                "bound": "memory" if memory_us >= floor else "arithmetic",
                "limits": gpu_facts.limits(predictions[case.name]) if case.name in predictions else "",
            }
        )
    return rows


def instructions(trial: Trial) -> str:
    """Return code size and instruction counts of a CPU kernel, in one line."""
    report = trial.evaluation.compile
    if report is None or not report.instructions:
        return ""
    counts = ", ".join(f"{n} {kind}" for kind, n in sorted(report.instructions.items(), key=lambda p: -p[1])[:12])
    return f"{report.code_bytes or '?'} bytes of code; instructions by class: {counts}"


def tried(population: Population, name: str, related: Iterable[Trial] = ()) -> list[dict[str, Any]]:
    """Return a row per experiment on a kernel and on related ones, oldest first."""
    names = {*population.children(name)[-MOST_TRIED:], *(t.kernel.name for t in related)}
    rows: list[dict[str, Any]] = []
    for trial in map(population.get, sorted(names, key=order)):
        if experiment := trial.kernel.experiment:
            low, high = experiment.uplift
            rows.append(
                {
                    "name": trial.kernel.name,
                    "base": trial.kernel.base,
                    "title": title(trial),
                    "predicted": f"{low:g} to {high:g}",
                    "gain": gain(population, trial),
                    "outcome": outcome(population, trial),
                }
            )
    return rows[-MOST_TRIED:]


def change(before: str, after: str, context: int = 3) -> str:
    """Return a unified diff, or the new file if that is shorter."""
    diff = "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), n=context, lineterm=""))
    return diff if len(diff) < len(after) else after


def relatives(population: Population, trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """Return a row per related kernel, with its diff to its base unless that is long."""
    rows: list[dict[str, Any]] = []
    for trial in trials:
        base = population.get(trial.kernel.base).kernel.source if trial.kernel.base else ""
        diff = change(base, trial.kernel.source, context=2) if base else ""
        row = {"name": trial.kernel.name, "base": trial.kernel.base or "nothing", "title": title(trial)}
        rows.append({**row, "outcome": outcome(population, trial), "diff": diff if len(diff) <= MOST_DIFF else ""})
    return rows


def gain(population: Population, trial: Trial) -> str:
    """Return the gain over the base, measured or predicted; for a seed, its speed."""
    uplift, ratio = population.uplift(trial), score(trial)
    if trial.evaluation.by_model and ratio:
        share = f"predicted {100 * ratio:.3g} % of the roofline"
        return share if uplift is None else f"{uplift:+.1f} % (predicted)"
    if uplift is None:
        return f"{ratio:.3g} times the reference's speed" if ratio else "not timed"
    return f"{uplift:+.1f} %" if ratio else f"none ({trial.evaluation.verdict.value})"


def outcome(population: Population, trial: Trial) -> str:
    """Return the result of a kernel in one line."""
    evaluation = trial.evaluation
    if evaluation.verdict is not Verdict.OK:
        return f"{evaluation.verdict.value}: {' '.join(evaluation.reason.split())[:MOST_REASON]}"
    if evaluation.skipped or evaluation.coverage == "none":
        return evaluation.reason
    if evaluation.by_model:
        return f"correct, {gain(population, trial)}"
    speedup = evaluation.speedup_over(REFERENCE)
    incumbent = " (the incumbent)" if population.incumbent() == trial.kernel.name else ""
    return f"correct, {speedup.ratio:.3g} times the reference's speed{incumbent}" if speedup else "correct, not timed"


def evidence(trial: Trial) -> str:
    """Return the evidence of a failure: compiler log, differences, last output; long texts lose their middle."""
    evaluation = trial.evaluation
    log = evaluation.compile.log if evaluation.compile and not evaluation.compile.ok else ""
    text = "\n".join((log, *evaluation.evidence)).strip()
    if len(text) <= MOST_EVIDENCE:
        return text
    half = MOST_EVIDENCE // 2
    return f"{text[:half]}\n... ({len(text) - MOST_EVIDENCE} characters) ...\n{text[-half:]}"


def prediction_record(population: Population) -> str:
    """Return how many of the latest measured gains lay within the predicted range, and the mean of both."""
    predictions = prediction_accuracy.predictions(population, population.latest(MOST_PREDICTIONS))
    measured = [(p, p.measured) for p in predictions if p.measured is not None]
    if not measured:
        return "not known yet"
    within = sum(p.within for p, _ in measured)
    predicted = sum(p.middle for p, _ in measured) / len(measured)
    mean = sum(gain for _, gain in measured) / len(measured)
    return f"{within} of {len(measured)} within the range; mean predicted {predicted:+.0f} %, measured {mean:+.0f} %"


def sites(source: str) -> list[str]:
    """Return the names of the sites marked in a source."""
    return KernelSource(source).site_names()


def title(trial: Trial) -> str:
    """Return the title of a kernel's experiment, safe for a Markdown table."""
    return trial.kernel.experiment.title.replace("|", "/") if trial.kernel.experiment else "seed"
