"""Facts about a GPU and its kernels for the prompt templates: machine, code objects, predicted limits, counters.

A code object's instructions are listed per loop, with the cycles that a wave needs of each pipeline.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernel_scientist.gpu.model import constants
from kernel_scientist.gpu.model.issue import SHAPE, pipeline_cycles
from kernel_scientist.gpu.model.predict import SIMDS
from kernel_scientist.hardware import counter_figures, occupancy
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records import source_line
from kernel_scientist.records.evaluation import CodeObject, Prediction, Trial
from kernel_scientist.records.gpu import Counters, Figures
from kernel_scientist.scientist.roles import Assignment

MOST_ADVICE, MOST_OBJECTS, MOST_GRIDS, MOST_NAMES = 8, 4, 4, 20
"""Sentences of the performance model's advice, code objects, grids per code object, names of cases."""
LEAST_SHARE = 25
"""Percent of the predicted time below which a resource is not named: it hardly adds to the model's smooth maximum."""
MOST_CASES, MOST_PARTS, MOST_KERNELS = 6, 4, 12
"""Cases and GPU kernels with counters in the designer's prompt; kernels with counters in the selector's."""
MOST_CLASSES = 4
"""Instruction classes that are named per pipeline."""
NAMES = {"vector": "vector", "matrix": "matrix", "lds": "LDS", "l1": "L1"}
"""Pipelines in the order of the text."""
_OCCUPANCY = re.compile(r": \d+ of \d+ waves per SIMD fit, ")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_TYPES = {"fp8|bf8|f8f6f4": "fp8", "xf32": "tf32", "bf16": "bf16", "f16": "fp16", "i8": "int8", "f64": "fp64"}
"""Type of a peak rate by the name of a matrix instruction; `fp32` for other names."""


def machine(gpu: Gpu, by_model: bool) -> list[str]:
    """Return the GPU's properties, one per line."""
    limits = occupancy.limits(gpu.arch)
    peaks = ", ".join(f"{name} {value / 1000:.0f}" for name, value in gpu.peak_gflops.items())
    last = f"; {gpu.last_bytes >> 20} MiB last-level cache in front of memory" if gpu.last_bytes else ""
    last += f", {gpu.last_gbps / 1000:.1f} TB/s" if gpu.last_bytes else ""
    lines = [
        f"{gpu.name} ({gpu.arch}): {gpu.units} compute units{_dies(gpu)}, {gpu.clock_ghz} GHz, "
        f"waves of {gpu.wave} lanes",
        f"memory {gpu.memory_gbps / 1000:.2f} TB/s; L2 {gpu.l2_bytes >> 20} MiB per die, {gpu.l2_gbps / 1000:.0f} TB/s "
        f"in total{last}",
        f"dense peaks in TFLOP/s: {peaks}; these and the rates above are data-sheet values",
        f"per compute unit: {limits.lds >> 10} KiB of LDS (at most {limits.lds_workgroup >> 10} KiB per workgroup), "
        f"{limits.simds} SIMDs with at most {limits.waves} waves and {limits.registers} registers per lane each"
        f"{_wave(limits)}",
    ]
    if limits.scalars:  # AMD's; as `gpu.model.issue` counts them
        lines.append(
            "a wave's access to memory takes the largest of 4 cycles of L1, its bytes / 64, and the number of "
            f"{gpu.line_bytes}-byte lines that it touches; one to LDS takes bytes / 128 cycles, at least 2, and those "
            "of bank conflicts"
        )
    if by_model:
        lines.append("no such machine is available: kernels are compiled for it and a model predicts their times")
    return lines


def _dies(gpu: Gpu) -> str:
    """Return how many dies a GPU has, and which workgroups each of several gets."""
    if gpu.dies == 1:
        return ""
    return f" on {gpu.dies} dies (XCDs), of which die i gets workgroups i, i + {gpu.dies}, i + {2 * gpu.dies}, ..."


def _wave(unit: occupancy.ComputeUnit) -> str:
    """Return how many registers a wave may have, if that is not all of a SIMD's."""
    if not unit.scalars:  # NVIDIA's
        return f", of which a warp may have {unit.wave_registers - 1}"
    half = unit.wave_registers // 2
    return f"; a wave may have {half} vector and {half} accumulation registers"


def limit_counts(trial: Trial) -> str:
    """Return how often each resource is the largest limit, as in `latency in 9 cases, l2 in 3`; empty if unknown."""
    counts = Counter(p.limited_by for p in trial.evaluation.predictions)
    return ", ".join(f"{name} in {n} case{'s' if n > 1 else ''}" for name, n in counts.most_common())


def limit_shares(trial: Trial) -> str:
    """Return the same with each resource's share, as in `l2 in 16 cases (l2 47-82 %, lds 20-43 %)`."""
    groups = _by_limit(trial)
    return ", ".join(f"{name} in {len(g)} case{'s' if len(g) > 1 else ''} ({_shares(g)})" for name, g in groups.items())


def _by_limit(trial: Trial) -> dict[str, list[Prediction]]:
    """Return the predictions by the resource that limits them, the largest group first."""
    groups: dict[str, list[Prediction]] = {}
    for prediction in trial.evaluation.predictions:
        groups.setdefault(prediction.limited_by, []).append(prediction)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


@dataclass(frozen=True)
class PredictedLimit:
    """A group of cases that the same resource limits."""

    limit: str
    cases: list[str]
    """Names of the first few."""
    count: int
    parts: str
    """Per resource the time that it alone would take, as a range of percent of the predicted time."""
    advice: list[str]
    """The performance model's sentences, without those of earlier groups."""
    lines: tuple[str, list[str]] | None
    """What a table by source line is about, and its rows; None where no case was executed for that."""

    def with_advice(self, advice: list[str]) -> "PredictedLimit":
        """Return it with other advice."""
        return dataclasses.replace(self, advice=advice)


def limits(trial: Trial) -> list[PredictedLimit]:
    """Return the predicted limits, the largest group of cases first."""
    rows, told = list[PredictedLimit](), set[str]()
    for limit, group in _by_limit(trial).items():
        slowest = max(group, key=lambda p: p.time_us)
        cases = [p.case for p in group]
        lined = next((p for p in (slowest, *group) if p.lines), None)
        advice = _advice(group, told)
        rows.append(PredictedLimit(limit, cases[:MOST_NAMES], len(group), _shares(group), advice, _lines(lined)))
    return rows


def _advice(group: Sequence[Prediction], told: set[str]) -> list[str]:
    """Return the performance model's sentences on a group of cases, those about most cases first.

    Sentences that differ in numbers only are one: with the numbers of the cases whose last varying number is the
    least and the largest. They are added to `told`, and left out if they are there.
    """
    alike: dict[str, list[tuple[Prediction, str]]] = {}
    for prediction in sorted(group, key=lambda p: -p.time_us):
        for sentence in prediction.words:
            alike.setdefault(_NUMBER.sub("#", sentence), []).append((prediction, sentence))
    new = sorted((item for item in alike.items() if item[0] not in told), key=lambda item: -len(item[1]))
    told.update(form for form, _ in new[:MOST_ADVICE])
    left_out = [f"{len(new) - MOST_ADVICE} more remarks are left out"] if len(new) > MOST_ADVICE else []
    return [*(_ranged(cases, len(group)) for _, cases in new[:MOST_ADVICE]), *left_out]


def _ranged(said: Sequence[tuple[Prediction, str]], of: int) -> str:
    """Return sentences on some of `of` cases that differ in numbers only as one, such as `8 of 18 cases, from m64-n64
    to m96-n64: 288 to 32 programs leave 16 to 272 CUs idle`."""
    rows = [(_NUMBER.findall(sentence), p.case) for p, sentence in said]
    varying = [place for place, column in enumerate(zip(*(row for row, _ in rows), strict=True)) if len({*column}) > 1]
    ordered = sorted(rows, key=lambda row: float(row[0][varying[-1]])) if varying else rows
    (least, first), (most, last) = ordered[0], ordered[-1]
    pairs = iter([_plain(a) if a == b else f"{_plain(a)} to {_plain(b)}" for a, b in zip(least, most, strict=True)])
    text = _NUMBER.sub(lambda _: next(pairs), said[0][1])
    if len(said) == 1:
        return f"{first}: {text}"
    ends = f", from {first} to {last}" if least != most else ""
    return f"{f'all {of}' if len(said) == of else f'{len(said)} of {of}'} cases{ends}: {text}"


def _plain(number: str) -> str:
    return f"{float(number):.0f}" if "e" in number else number


def _lines(prediction: Prediction | None) -> tuple[str, list[str]] | None:
    """Return what a prediction's table by source line is about, and its rows; None without lines."""
    if prediction is None:
        return None
    lines = prediction.lines
    cycles = "`cycles`: of the GPU's clock, until one program that has a compute unit to itself is done with the line"
    meaning = f"{source_line.meaning(lines)}; {cycles}; {source_line.CAUSES}"
    return f"{prediction.case}: {meaning}", source_line.table(lines)


def _shares(group: Sequence[Prediction]) -> str:
    """Return each resource's share of the predicted time, the largest first, without those below LEAST_SHARE."""
    shares = {n: [100 * p.breakdown_us.get(n, 0.0) / p.time_us for p in group] for n in group[0].breakdown_us}
    ranges = sorted(((max(s), min(s), n) for n, s in shares.items() if max(s) >= LEAST_SHARE), reverse=True)
    return ", ".join(
        f"{n} {low:.0f}-{high:.0f} %" if high - low > 1 else f"{n} {high:.0f} %" for high, low, n in ranges
    )


def provenance(trials: Iterable[Trial]) -> str:
    """Return by what the performance model of some kernels was calibrated, its error and rates; empty without a
    prediction."""
    first = next((p for trial in trials for p in trial.evaluation.predictions), None)
    if first is None:
        return ""
    fitted, error = constants.of(first.machine), constants.held_out(first.machine)
    reached = (
        f"{100 * fitted.hbm:.0f} % of memory's data-sheet rate, {100 * fitted.cache:.0f} % of the last-level cache's "
        f"and {100 * fitted.l2:.0f} % of L2's, where an access to a part of a line of 128 bytes costs the whole line"
    )
    one = fitted.next_us + fitted.start_us
    launches = (
        f"{fitted.launch_us + fitted.start_us:.1f} us for the first launch of a call, {one:.1f} us for each other"
    )
    off = f"; its error on times that it was not fitted to was {error}: a few percent between two kernels are uncertain"
    return f"{first.basis}{off if error else ''}; it assumes {reached}, and {launches}"


def resources(trial: Trial) -> str:
    """Return registers, LDS and occupancy of a kernel's code objects, in one line."""
    report = trial.evaluation.compile
    return "; ".join(_resources(o) for o in report.objects[:MOST_OBJECTS]) if report else ""


def _resources(code: CodeObject) -> str:
    workgroups = occupancy.resident(code.arch, *code.needs)
    registers = f"{code.vgpr} + {code.agpr} accumulation" if code.agpr else f"{code.vgpr}"
    reserved = f" of {code.registers} reserved" if code.registers > code.used else ""
    spilled = f" ({code.spills} spilled)" if code.spills else ""
    waves = "waves" if code.arch.startswith("gfx") else "warps"
    return (
        f"{code.kernel}: {code.num_warps} {waves}, {registers}{reserved} registers per lane{spilled}, "
        f"{code.lds_bytes} B LDS; workgroups per compute unit: {workgroups} ({code.occupancy} waves per SIMD), "
        f"limited by {occupancy.limit_words(code.arch, *code.needs)}"
    )


def code(gpu: Gpu, trial: Trial) -> list[str]:
    """Return resources and instructions of a kernel's code objects, and the compiler findings."""
    report = trial.evaluation.compile
    if report is None or not report.objects:
        return []
    lines: list[str] = []
    for number, code_object in enumerate(report.objects[:MOST_OBJECTS]):
        launches = [x for x in report.launches if x.code == number]
        grids = ["x".join(map(str, grid)) for grid in sorted({x.grid for x in launches})]
        named = f"{', '.join(grids[:MOST_GRIDS])}{', ...' if len(grids) > MOST_GRIDS else ''}"
        where = f"launched in {len({x.case for x in launches})} cases, grids {named}" if grids else "grid not known"
        lines += [f"{_resources(code_object)}; {where}", *described(gpu, code_object)]
    left_out = len(report.objects) - MOST_OBJECTS
    lines += [f"({left_out} more code objects)"] if left_out > 0 else []
    told = [f for f in report.findings if not _OCCUPANCY.search(f)]  # the objects' own lines have it
    return [*lines, *told, *(f"not captured: {m}" for m in report.missed[:2])]


def counters(assignment: Assignment, trial: Trial) -> list[str]:
    """Return a kernel's counters: in total, per GPU kernel, and per case, the most wasteful first."""
    counted = trial.evaluation.counters
    if not counted:
        return []
    least_bytes = {c.name: assignment.problem.work(c).bytes for c in assignment.profile.benchmarks}
    cases, parts = _by(counted, "case"), _by(counted, "kernel")
    lines = [f"all {len(cases)} cases together: {counter_figures.describe_total(counted)}"]
    if len(parts) > 1:
        lines += [
            f"{name}, all cases: {counter_figures.describe_total(part)}" for name, part in [*parts.items()][:MOST_PARTS]
        ]
    totals = {case: counter_figures.total(group) for case, group in cases.items()}
    order = sorted(totals, key=lambda case: _moved_bytes(totals[case]) / (least_bytes.get(case) or 1.0), reverse=True)
    return [*lines, *(f"{c}: {counter_figures.describe(totals[c], least_bytes.get(c))}" for c in order[:MOST_CASES])]


def counter_rows(trials: Sequence[Trial]) -> list[str]:
    """Return one line of counters per kernel that has some."""
    counted = [t for t in trials if t.evaluation.counters][:MOST_KERNELS]
    return [f"{t.kernel.name}: {counter_figures.describe_total(t.evaluation.counters)}" for t in counted]


def _by(counted: Sequence[Counters], key: str) -> dict[str, list[Counters]]:
    groups: dict[str, list[Counters]] = {}
    for counters in counted:
        groups.setdefault(getattr(counters, key), []).append(counters)
    return groups


def _moved_bytes(figures: Figures) -> float:
    return (figures.hbm_read_bytes or 0.0) + (figures.hbm_written_bytes or 0.0)


def described(gpu: Gpu, code: CodeObject) -> list[str]:
    """Return a line per loop depth, the innermost first; empty if no instruction was counted."""
    lines: list[str] = []
    for depth, mix in reversed([*enumerate(code.mix)]):
        if text := _line(gpu, mix):
            lines.append(f"  {_place(depth, len(code.mix))}: {text}")
    return lines


def _place(depth: int, depths: int) -> str:
    if depth == 0:
        return "outside of loops" if depths > 1 else "no loop"
    return f"per iteration of {'the loop' if depths == 2 else f'loop level {depth}'}"


def _line(gpu: Gpu, mix: Mapping[str, int]) -> str:
    """Return the instructions of each pipeline with their cycles, and the others without."""
    pipes: dict[str, list[tuple[float, str]]] = {name: [] for name in NAMES}
    others: list[tuple[float, str]] = []
    for name, count in mix.items():
        pipe, cycles = _cycles(gpu, name)
        pipes.get(pipe, others).append((count * cycles if pipe in pipes else count, f"{count} {name}"))
    parts = [
        f"{NAMES[pipe]} {sum(cycles for cycles, _ in rows):.0f} cycles ({_largest(rows)})"
        for pipe, rows in pipes.items()
        if rows
    ]
    return "; ".join([*parts, _largest(others)] if others else parts)


def _largest(rows: list[tuple[float, str]]) -> str:
    ordered = [text for _, text in sorted(rows, key=lambda row: -row[0])]
    return ", ".join([*ordered[:MOST_CLASSES], *(["..."] if len(ordered) > MOST_CLASSES else [])])


def _cycles(gpu: Gpu, name: str) -> tuple[str, float]:
    """Return an instruction's pipeline and cycles; AMD's matrix instructions run at the peak rate of their type."""
    if not gpu.arch.startswith("gfx"):
        return "", 0.0
    shape = SHAPE.search(name)
    if shape is None:
        return pipeline_cycles(name)
    m, n, k = (int(size) for size in shape.groups())
    kind = next((kind for pattern, kind in _TYPES.items() if re.search(pattern, name)), "fp32")
    rate = gpu.peak_gflops[kind] / (gpu.units * SIMDS * gpu.clock_ghz)
    return "matrix", 2 * m * n * k / rate
