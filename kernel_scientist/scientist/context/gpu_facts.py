"""Facts about a GPU and its kernels for the prompt templates: machine, code objects, predicted limits, counters."""

from collections import Counter
from collections.abc import Sequence

from kernel_scientist.gpu.isa import assembly
from kernel_scientist.hardware import occupancy
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.profile import metrics
from kernel_scientist.records.evaluation import Prediction, Trial
from kernel_scientist.records.gpu import Counters, Figures
from kernel_scientist.scientist.prompts import rounded_us
from kernel_scientist.scientist.roles import Assignment

MOST_ADVICE, MOST_OBJECTS, MOST_GRIDS = 6, 4, 4
"""Sentences of the performance model's advice, code objects, grids per code object."""
MOST_CASES, MOST_PARTS, MOST_KERNELS = 6, 4, 12
"""Cases and GPU kernels with counters in the designer's prompt; kernels with counters in the selector's."""


def machine(gpu: Gpu, target: str) -> list[str]:
    """Return the GPU's properties, one per line."""
    limits = occupancy.limits(gpu.arch)
    peaks = ", ".join(f"{name} {value / 1000:.0f}" for name, value in gpu.peak_gflops.items())
    last = f"; {gpu.last_bytes >> 20} MiB last-level cache in front of memory" if gpu.last_bytes else ""
    lines = [
        f"{gpu.name} ({gpu.arch}): {gpu.units} compute units on {gpu.dies} die(s), {gpu.clock_ghz} GHz, "
        f"waves of {gpu.wave} lanes",
        f"memory {gpu.memory_gbps / 1000:.2f} TB/s; L2 {gpu.l2_bytes >> 20} MiB per die, {gpu.l2_gbps / 1000:.0f} TB/s "
        f"in total{last}",
        f"dense peaks in TFLOP/s: {peaks}",
        f"per compute unit: {limits.lds >> 10} KiB of LDS (at most {limits.lds_workgroup >> 10} KiB per workgroup), "
        f"{limits.simds} SIMDs with at most {limits.waves} waves and {limits.registers} registers per lane each",
    ]
    if target.startswith("model"):
        lines.append("no such machine is available: kernels are compiled for it and a model predicts their times")
    return lines


def limits(prediction: Prediction) -> str:
    """Return a prediction's breakdown in one line, the largest part first."""
    parts = sorted(prediction.breakdown_us.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {rounded_us(us)}" for name, us in parts if us > 0.1 * parts[0][1])


def advice(trial: Trial) -> list[str]:
    """Return the performance model's sentences on a kernel's limits, each once, the most frequent first."""
    predictions = trial.evaluation.predictions
    counts = Counter(sentence.split(" (")[0] for p in predictions for sentence in p.words)
    return [f"{sentence} [{n} of {len(predictions)} cases]" for sentence, n in counts.most_common(MOST_ADVICE)]


def code(trial: Trial) -> list[str]:
    """Return the resources and instructions of a kernel's code objects, and the compiler findings."""
    report = trial.evaluation.compile
    if report is None or not report.objects:
        return []
    lines: list[str] = []
    for number, code_object in enumerate(report.objects[:MOST_OBJECTS]):
        grids = sorted({"x".join(map(str, x.grid)) for x in report.launches if x.code == number})[:MOST_GRIDS]
        lines.append(f"{code_object.kernel}, {code_object.num_warps} warps, grids {', '.join(grids) or 'not known'}:")
        lines += assembly.described(code_object)
    return [*lines, *report.findings, *(f"not captured: {m}" for m in report.missed[:2])]


def counters(assignment: Assignment, trial: Trial) -> list[str]:
    """Return a kernel's counters: in total, per GPU kernel, and per case, the most wasteful first."""
    counted = trial.evaluation.counters
    if not counted:
        return []
    least_bytes = {c.name: assignment.problem.work(c).bytes for c in assignment.profile.benchmarks}
    cases, parts = _by(counted, "case"), _by(counted, "kernel")
    lines = [f"all {len(cases)} cases together: {metrics.describe_total(counted)}"]
    if len(parts) > 1:
        lines += [f"{name}, all cases: {metrics.describe_total(part)}" for name, part in [*parts.items()][:MOST_PARTS]]
    totals = {case: metrics.total(group) for case, group in cases.items()}
    order = sorted(totals, key=lambda case: _moved_bytes(totals[case]) / (least_bytes.get(case) or 1.0), reverse=True)
    return [*lines, *(f"{c}: {metrics.describe(totals[c], least_bytes.get(c))}" for c in order[:MOST_CASES])]


def counter_rows(trials: Sequence[Trial]) -> list[str]:
    """Return one line of counters per kernel that has some."""
    counted = [t for t in trials if t.evaluation.counters][:MOST_KERNELS]
    return [f"{t.kernel.name}: {metrics.describe_total(t.evaluation.counters)}" for t in counted]


def _by(counted: Sequence[Counters], key: str) -> dict[str, list[Counters]]:
    groups: dict[str, list[Counters]] = {}
    for counters in counted:
        groups.setdefault(getattr(counters, key), []).append(counters)
    return groups


def _moved_bytes(figures: Figures) -> float:
    return (figures.hbm_read_bytes or 0.0) + (figures.hbm_written_bytes or 0.0)
