"""What prompts say of a GPU: the machine, code objects, what a machine model holds to be the limits, its counters."""

from collections import Counter
from collections.abc import Sequence

from kernel_scientist.gpu.isa import text
from kernel_scientist.hardware import occupancy
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.profile import metrics
from kernel_scientist.profile import text as counted_wording
from kernel_scientist.records.evaluation import Prediction, Trial
from kernel_scientist.records.gpu import Counters, Figures
from kernel_scientist.scientist.prompts import brief_us
from kernel_scientist.scientist.roles import Assignment

ADVICE, OBJECTS, GRIDS = 6, 4, 4
"""Sentences of a model's, code objects, and grids of each that are shown."""
COUNTED, KERNELS, ROWS = 6, 4, 12
"""Cases and kernels of which a designer sees counters, and kernels of which a selector does."""


def machine(gpu: Gpu, target: str) -> list[str]:
    """What the kernel runs on, a line each."""
    limits = occupancy.limits(gpu.arch)
    peaks = ", ".join(f"{name} {value / 1000:.0f}" for name, value in gpu.peak_gflops.items())
    last = f", {gpu.last_bytes >> 20} MiB last-level cache in front of memory" if gpu.last_bytes else ""
    lines = [
        f"{gpu.name} ({gpu.arch}): {gpu.units} compute units on {gpu.dies} die(s), {gpu.clock_ghz} GHz, "
        f"waves of {gpu.wave} lanes",
        f"memory {gpu.memory_gbps / 1000:.2f} TB/s; L2 {gpu.l2_bytes >> 20} MiB per die, {gpu.l2_gbps / 1000:.0f} TB/s "
        f"together{last}",
        f"peaks in TFLOP/s, dense: {peaks}",
        f"per compute unit {limits.lds >> 10} KiB of LDS ({limits.lds_workgroup >> 10} KiB per workgroup), "
        f"{limits.simds} SIMDs of {limits.waves} waves at most and {limits.registers} registers per lane",
    ]
    if target.startswith("model"):
        lines.append("there is no such machine at hand: code is compiled for it, and times are predicted by a model")
    return lines


def limits(prediction: Prediction) -> str:
    """A prediction's breakdown in a line, the largest part first."""
    parts = sorted(prediction.breakdown_us.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {brief_us(us)}" for name, us in parts if us > 0.1 * parts[0][1])


def advice(trial: Trial) -> list[str]:
    """What a machine model says of a kernel's limits, each sentence once, those of most cases first."""
    counts = Counter(word.split(" (")[0] for p in trial.evaluation.predictions for word in p.words)
    return [f"{word} [{n} of {len(trial.evaluation.predictions)} cases]" for word, n in counts.most_common(ADVICE)]


def code(trial: Trial) -> list[str]:
    """What a GPU kernel's code objects tell, and what is worth knowing of them."""
    report = trial.evaluation.compile
    if report is None or not report.objects:
        return []
    lines: list[str] = []
    for number, it in enumerate(report.objects[:OBJECTS]):
        grids = sorted({"x".join(map(str, x.grid)) for x in report.launches if x.code == number})
        lines += [
            f"{it.kernel}, {it.num_warps} warps, grids {', '.join(grids[:GRIDS]) or 'not known'}:",
            *text.lines(it),
        ]
    return [*lines, *report.findings, *(f"not seen: {m}" for m in report.missed[:2])]


def counted(assignment: Assignment, trial: Trial) -> list[str]:
    """What the GPU's counters say of a kernel: in all, by its parts, and case by case, the most wasteful first."""
    counters = trial.evaluation.counters
    if not counters:
        return []
    must = {c.name: assignment.problem.work(c).bytes for c in assignment.profile.benchmarks}
    cases, parts = (_by(counters, "case"), _by(counters, "kernel"))
    lines = [f"all {len(cases)} cases together: {counted_wording.total(counters)}"]
    if len(parts) > 1:
        lines += [f"{name}, all cases: {counted_wording.total(some)}" for name, some in [*parts.items()][:KERNELS]]
    totals = {case: metrics.total(some) for case, some in cases.items()}
    order = sorted(totals, key=lambda case: _moved(totals[case]) / (must.get(case) or 1.0), reverse=True)
    return [*lines, *(f"{case}: {counted_wording.said(totals[case], must.get(case))}" for case in order[:COUNTED])]


def counted_rows(trials: Sequence[Trial]) -> list[str]:
    """What the counters say of several kernels, a line each."""
    having = [t for t in trials if t.evaluation.counters][:ROWS]
    return [f"{t.kernel.name}: {counted_wording.total(t.evaluation.counters)}" for t in having]


def _by(counters: Sequence[Counters], key: str) -> dict[str, list[Counters]]:
    found: dict[str, list[Counters]] = {}
    for it in counters:
        found.setdefault(getattr(it, key), []).append(it)
    return found


def _moved(of: Figures) -> float:
    return (of.hbm_read_bytes or 0.0) + (of.hbm_written_bytes or 0.0)
