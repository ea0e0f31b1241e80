"""The facts that prompts are made of, from records: tables, analyses, what was tried. Pure, and rounded for reading."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from kernel_scientist.compile.source import KernelSource, SourceError
from kernel_scientist.hardware.peaks import floor_us
from kernel_scientist.population import prediction_accuracy
from kernel_scientist.population.lineage import Population, score
from kernel_scientist.problems.taskfolder import Problem, Profile
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE, Verdict
from kernel_scientist.scientist.context import gpu_facts as gpu
from kernel_scientist.scientist.prompts import brief_us
from kernel_scientist.scientist.roles import Assignment

TRIED, LISTED = 30, 60
"""Rows of a table: what was tried on a kernel, and all kernels."""
DIFF, WORDS, EVIDENCE = 4000, 300, 6000
"""Characters of a diff, of an outcome in a table, of a failure's evidence."""


def problem(it: Problem, profile: Profile) -> dict[str, Any]:
    """What must be computed, and how it is judged."""
    policy = it.policy
    rules = [
        "" if policy.library else "No library (torch, BLAS) may do the work.",
        "" if policy.threads else "Only one thread may be used.",
        "" if policy.graphs else "Graphs may not be replayed.",
        f"Inputs {', '.join(map(str, policy.static))} stay the same from call to call." if policy.static else "",
    ]
    return {
        "name": it.name,
        "description": it.description,
        "reference": (it.folder / "reference.py").read_text(),
        "tests": [c.name for c in profile.tests],
        "varied": ", ".join(f"{k} {a}-{b} (step {s})" for k, (a, b, s) in profile.vary.items()),
        "benchmarks": [c.name for c in profile.benchmarks],
        "policy": " ".join(r for r in rules if r),
    }


def machine(assignment: Assignment) -> list[str]:
    """What the kernel runs on, a line each."""
    if assignment.gpu is not None:
        return gpu.machine(assignment.gpu, assignment.target)
    facts = assignment.facts
    caches = ", ".join(f"{level} {size >> 10} KiB" for level, size in facts.caches.items())
    wide = {"avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "avx512_vnni", "amx_bf16", "asimd", "sve"}
    known = ", ".join(sorted(wide & facts.features))
    return [
        f"{facts.model}, {facts.cores} cores may be used; caches: {caches or 'unknown'}",
        f"vector registers of {facts.vector_bytes} bytes; instruction sets: {known or 'none listed'}",
        "g++, C++20, OpenMP; threads start from a pool that stays warm",
        "some 0.1 ms passes beside each call whatever it does: where a call takes less, hardly any gain is credited",
    ]


def times(trial: Trial) -> dict[str, float]:
    """A kernel's time per case in us: measured, or predicted where the target is a model."""
    evaluation = trial.evaluation
    if evaluation.by_model:
        return {p.case: p.time_us for p in evaluation.predictions}
    return {t.case: t.time_us for t in evaluation.timings}


def timings(trial: Trial, cases: Sequence[str]) -> list[str]:
    """A kernel's time per case, in words."""
    known = times(trial)
    return [brief_us(known[c]) if c in known else "-" for c in cases]


def rows(population: Population, cases: Sequence[str]) -> tuple[list[dict[str, Any]], int]:
    """All kernels for the Selector, no code; and how many were left out to keep the table short."""
    trials = list(population)
    if len(trials) > LISTED:
        keep = {t.kernel.name for t in population.ranked()[: LISTED // 2]}
        keep |= {t.kernel.base or "" for t in trials if t.kernel.name in keep} | {
            t.kernel.name for t in trials[-LISTED // 2 :]
        }
        trials = [t for t in trials if t.kernel.name in keep]
    shown = [
        {
            "name": t.kernel.name,
            "base": t.kernel.base,
            "reference": t.kernel.reference,
            "title": title(t),
            "verdict": t.evaluation.verdict.value,
            "speedup": f"{score(t):.3g}" if score(t) else "-",
            "times": timings(t, cases),
        }
        for t in trials
    ]
    return shown, len(population) - len(trials)


def kernel(population: Population, trial: Trial) -> dict[str, Any]:
    """A kernel with its one-step analysis: the experiment that made it, and times before and after."""
    base = population.get(trial.kernel.base) if trial.kernel.base else None
    before = times(base) if base else {}
    return {
        "name": trial.kernel.name,
        "base": trial.kernel.base,
        "source": trial.kernel.source,
        "experiment": trial.kernel.experiment,
        "report": trial.kernel.report if trial.kernel.experiment else "",
        "measured": measured(population, trial),
        "outcome": outcome(population, trial),
        "times": [
            {"case": case, "before": brief_us(before[case]), "after": brief_us(us)}
            for case, us in times(trial).items()
            if case in before
        ],
    }


def roofline(assignment: Assignment, trial: Trial) -> list[dict[str, Any]]:
    """Per case the predicted floor, how much of its rate was reached, and what a model holds to be the limits."""
    peaks, found = assignment.peaks, list[dict[str, Any]]()
    known, predicted = times(trial), {p.case: p for p in trial.evaluation.predictions}
    for case in assignment.profile.benchmarks:
        if (time_us := known.get(case.name)) is None:
            continue
        work = assignment.problem.work(case)
        floor = floor_us(work, peaks)
        memory_us = work.bytes / peaks.memory_gbps * 1e-3
        found.append(
            {
                "case": case.name,
                "time_us": time_us,
                "floor_us": floor,
                "percent": f"{100 * floor / time_us:.2g}",
                "bound": "memory" if memory_us >= floor else "arithmetic",
                "limits": gpu.limits(predicted[case.name]) if case.name in predicted else "",
            }
        )
    return found


def compiled(trial: Trial) -> str:
    """What the compiler made of a kernel, in a line."""
    report = trial.evaluation.compile
    if report is None or not report.instructions:
        return ""
    counts = ", ".join(f"{n} {kind}" for kind, n in sorted(report.instructions.items(), key=lambda p: -p[1])[:12])
    return f"{report.code_bytes or '?'} bytes of code; instructions by class: {counts}"


def tried(population: Population, name: str, extra: Iterable[Trial] = ()) -> list[dict[str, Any]]:
    """What was tried on a kernel and near it, and what came of it, oldest first."""
    trials = {t.kernel.name: t for t in (*population.children(name), *extra) if t.kernel.experiment}
    out: list[dict[str, Any]] = []
    for trial in sorted(trials.values(), key=lambda t: t.kernel.name)[-TRIED:]:
        assert trial.kernel.experiment is not None
        low, high = trial.kernel.experiment.uplift
        row = {
            "name": trial.kernel.name,
            "base": trial.kernel.base,
            "title": title(trial),
            "predicted": f"{low:g} to {high:g}",
        }
        out.append({**row, "measured": measured(population, trial), "outcome": outcome(population, trial)})
    return out


def change(before: str, after: str) -> str:
    """What was changed, as a diff; of a file that was written anew, the file."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=3, lineterm="")
    diff = "\n".join(lines)
    return diff if len(diff) < len(after) else after


def relatives(population: Population, trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """Neighbouring attempts with what they changed."""
    out: list[dict[str, Any]] = []
    for trial in trials:
        base = population.get(trial.kernel.base).kernel.source if trial.kernel.base else ""
        lines = difflib.unified_diff(base.splitlines(), trial.kernel.source.splitlines(), n=2, lineterm="")
        diff = "\n".join(lines) if base else ""
        row = {"name": trial.kernel.name, "base": trial.kernel.base or "nothing", "title": title(trial)}
        out.append({**row, "outcome": outcome(population, trial), "diff": diff if len(diff) <= DIFF else ""})
    return out


def measured(population: Population, trial: Trial) -> str:
    """The gain over the base, in words: measured, or predicted where the target is a model."""
    gain, ratio = population.uplift(trial), score(trial)
    if trial.evaluation.by_model and ratio:
        share = f"{100 * ratio:.3g} % of the roofline, predicted by the model"
        return share if gain is None else f"{gain:+.1f} % (predicted by the model)"
    over = f"{ratio:.3g} times the reference's speed" if ratio else "not timed"
    return over if gain is None else (f"{gain:+.1f} %" if ratio else f"nothing: {trial.evaluation.verdict.value}")


def outcome(population: Population, trial: Trial) -> str:
    """What came of a kernel, in a line."""
    if trial.evaluation.verdict is not Verdict.OK:
        reason = " ".join(trial.evaluation.reason.split())[:WORDS]
        return f"{trial.evaluation.verdict.value}: {reason}"
    speedup = trial.evaluation.speedup_over(REFERENCE)
    if trial.evaluation.held or trial.evaluation.coverage == "none":
        return trial.evaluation.reason
    if trial.evaluation.by_model:
        return f"right, {measured(population, trial)}"
    best = population.best()
    rank = " (the incumbent)" if best is not None and best.kernel.name == trial.kernel.name else ""
    return f"right, {speedup.ratio:.3g} times the reference's speed{rank}" if speedup else "right, not timed"


def evidence(trial: Trial) -> str:
    """What is known of a failure: the compiler's words, the differences, the last output."""
    evaluation = trial.evaluation
    log = evaluation.compile.log if evaluation.compile and not evaluation.compile.ok else ""
    words = "\n".join((log, *evaluation.evidence)).strip()
    half = EVIDENCE // 2
    return (
        words
        if len(words) <= EVIDENCE
        else f"{words[:half]}\n... ({len(words) - EVIDENCE} characters) ...\n{words[-half:]}"
    )


def record(population: Population) -> str:
    """How good predictions were so far: in how many of the trials the measured gain lay within the predicted range."""
    timed = [p for p in prediction_accuracy.predictions(population) if p.measured is not None]
    if not timed:
        return "not known yet"
    within = sum(p.held for p in timed)
    mean = sum(p.middle for p in timed) / len(timed)
    got = sum(p.measured or 0.0 for p in timed) / len(timed)
    return f"{within} of {len(timed)} within the range; predicted {mean:+.0f} % on average, measured {got:+.0f} %"


def sites(source: str) -> list[str]:
    """The names of the sites that a source marks."""
    return KernelSource(source).site_names()


def tunables(source: str) -> str:
    """Declared tunables and their values, in a line."""
    try:
        return ", ".join(f"{k} {v}" for k, v in KernelSource(source).tunables.items())
    except SourceError:
        return ""


def title(trial: Trial) -> str:
    """The headline of the experiment that made a kernel, fit for a table."""
    text = trial.kernel.experiment.title if trial.kernel.experiment else "seed"
    return text.replace("|", "/")
