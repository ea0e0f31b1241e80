"""Makes the facts of a kernel's report (`scientist.report_facts`) from its records: pure functions."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kernel_scientist.gpu.model.launch import Placement
from kernel_scientist.hardware import counter_figures, occupancy
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.peaks import roofline_limit, roofline_us
from kernel_scientist.records.evaluation import CodeObject, CompileReport, Evaluation, Trial
from kernel_scientist.scientist.context import hot_loop
from kernel_scientist.scientist.report_facts import ReportFacts
from kernel_scientist.scientist.roles import Assignment

WIDEST_BITS = 128
"""Per lane, of an access to memory."""
SEVERAL = 4
"""Accesses of one width in loops from which they are named, as in the findings; fewer may be a scale or an index."""
TAIL = 0.1
"""Idle share of the units from which a case counts, as in the performance model's advice."""
LAUNCH = 0.25
"""Share of the launches from which a case counts, as that below which limits are not listed."""
SUMS = 8
"""Sums that keep a core busy: two FMAs a clock, of 4 clocks each (Intel 64 and IA-32 Architectures Optimization
Reference Manual); the threads of a core share them."""
_ACCESS = re.compile(r"^(?P<kind>vmem_load|lds_read|lds_write) (?P<bits>\d+)$")


@dataclass
class _Gains:
    """Factors by which cases could be faster at most."""

    factors: list[float] = field(default_factory=list[float])

    def percent(self, cases: int) -> float | None:
        """Return the gain over all cases, as a geometric mean; None without one."""
        logs = sum(math.log(factor) for factor in self.factors)
        return 100 * (math.exp(logs / cases) - 1) if cases and self.factors else None


def facts(assignment: Assignment, trial: Trial) -> ReportFacts:
    """Return what is known of a kernel."""
    evaluation, gpu, parts = trial.evaluation, assignment.gpu, list[ReportFacts]()
    report = evaluation.compile
    if report is not None and report.ok:
        parts += [*_gpu_code(gpu, report)] if gpu else [_cpu_code(assignment, report)]
    if evaluation.predictions:
        parts.append(_predicted(evaluation))
    if evaluation.counters:
        parts.append(_counted(assignment, evaluation))
    return _together([_problem(assignment, evaluation), *parts])


def _together(parts: Iterable[ReportFacts]) -> ReportFacts:
    """Return the facts of several parts as one record."""
    return ReportFacts.model_validate({name: value for part in parts for name, value in part.known().items()})


def _problem(assignment: Assignment, evaluation: Evaluation) -> ReportFacts:
    """Return what arithmetic means for the timed cases, and how far from the floor it is where it sets that."""
    peaks = assignment.peaks
    if not math.isfinite(peaks.memory_gbps):
        return ReportFacts()
    works = {case.name: assignment.problem.work(case) for case in assignment.profile.benchmarks}
    bound = {name: work for name, work in works.items() if roofline_limit(work, peaks) == "arithmetic"}
    types = Counter(work.dtype for work in bound.values()).most_common(1)
    times = [
        us / floor
        for name, work in bound.items()
        if (us := evaluation.times_us.get(name)) and (floor := roofline_us(work, peaks)) and us > 0
    ]
    over = None
    if times and assignment.gpu is not None:  # a CPU's floor assumes rates from which no gain may be computed
        over = math.exp(sum(map(math.log, times)) / len(times))
    return ReportFacts(
        arithmetic_cases=len(bound),
        operand_type=types[0][0] if types else None,
        over_floor=over,
        floor_gain=100 * (over - 1) if over else None,
    )


def _gpu_code(gpu: Gpu, report: CompileReport) -> Iterator[ReportFacts]:
    """Yield the facts of the code objects."""
    if not report.objects:
        return
    main = max(report.objects, key=lambda code: (sum(sum(mix.values()) for mix in code.mix[1:]), code.code_bytes))
    yield ReportFacts(
        kernel=main.kernel,
        spilled_registers=max(code.spills for code in report.objects),
        scratch_bytes=max(code.scratch_bytes for code in report.objects),
        matrix_instructions=sum(sum(code.mfma.values()) for code in report.objects),
    )
    yield _accesses(main)
    if main.arch in occupancy.LIMITS:
        yield _occupancy(main)
        yield _placed(gpu, report)


def _occupancy(code: CodeObject) -> ReportFacts:
    more = occupancy.for_one_more(code.arch, *code.needs)
    return ReportFacts(
        workgroups_per_unit=occupancy.resident(code.arch, *code.needs),
        waves_per_simd=code.occupancy,
        occupancy_limit=" and ".join(occupancy.limiting(code.arch, *code.needs)),
        registers=code.registers,
        registers_for_one_more=more[0] if more else None,
        lds_bytes=code.lds_bytes,
        lds_for_one_more_bytes=more[1] if more else None,
    )


def _accesses(code: CodeObject) -> ReportFacts:
    """Return the narrowest accesses of which the loops have several."""
    counts = Counter[tuple[str, int]]()
    for mix in code.mix[1:]:
        for name, count in mix.items():
            if match := _ACCESS.match(name):
                counts[match["kind"].partition("_")[0], int(match["bits"])] += count
    narrow = {
        kind: min((bits for (one, bits), count in counts.items() if one == kind and count >= SEVERAL), default=None)
        for kind in ("vmem", "lds")
    }
    bits = narrow["vmem"]
    return ReportFacts(load_bits=bits, lds_bits=narrow["lds"], load_times=WIDEST_BITS / bits if bits else None)


def _placed(gpu: Gpu, report: CompileReport) -> ReportFacts:
    """Return how the largest launch of each case fills the GPU."""
    largest = dict[str, tuple[int, int]]()
    for launch in report.launches:
        size = math.prod(launch.grid)
        if launch.code < len(report.objects) and size > largest.get(launch.case, (0, 0))[0]:
            largest[launch.case] = size, launch.code
    if not largest:
        return ReportFacts()
    idle, tail = _Gains(), _Gains()
    for size, code in largest.values():
        lost = Placement.of(gpu, report.objects[code], size).tail(gpu)
        if size < gpu.units:
            idle.factors.append(gpu.units / size)
        elif lost > TAIL:
            tail.factors.append(1 / (1 - lost))
    cases = len(largest)
    return ReportFacts(
        cases=cases,
        units=gpu.units,
        idle_cases=len(idle.factors),
        fewest_workgroups=min(size for size, _ in largest.values()),
        idle_gain=idle.percent(cases),
        tail_cases=len(tail.factors),
        tail_gain=tail.percent(cases),
    )


def _predicted(evaluation: Evaluation) -> ReportFacts:
    predictions = evaluation.predictions
    (limit, count), *_ = Counter(one.limited_by for one in predictions).most_common()
    launches = [one.breakdown_us.get("launch", 0.0) / one.time_us for one in predictions if one.time_us > 0]
    return ReportFacts(
        predicted_cases=len(predictions),
        limit=limit,
        limit_cases=count,
        launch_cases=sum(share >= LAUNCH for share in launches),
        launch_percent=100 * max(launches, default=0.0),
    )


def _counted(assignment: Assignment, evaluation: Evaluation) -> ReportFacts:
    total = counter_figures.total(evaluation.counters)
    cases = {one.case for one in evaluation.counters}
    least = sum(assignment.problem.work(c).bytes for c in assignment.profile.benchmarks if c.name in cases)
    read, written = total.hbm_read_bytes, total.hbm_written_bytes
    moved = read + written if read is not None and written is not None else None
    return ReportFacts(
        lds_conflicts=total.lds_conflicts_per_access,
        moved_over_least=moved / least if moved is not None and least else None,
    )


def _cpu_code(assignment: Assignment, report: CompileReport) -> ReportFacts:
    """Return what an x86 CPU's code computes with; nothing for others, whose assembly is not read here."""
    cpu = assignment.cpu
    if not report.instructions or "asimd" in cpu.features:
        return ReportFacts()
    of_code = ReportFacts(
        machine_bytes=cpu.vector_bytes,
        tile_products=report.instructions.get("tile product", 0),
        has_amx={"amx_tile", "amx_bf16"} <= cpu.features,
        amx_times=_amx_times(assignment),
    )
    loop = hot_loop.read(report.hot_loop)
    if loop is None:
        return of_code
    threads = -(-cpu.cores // cpu.physical) if cpu.physical else 1
    of_loop = ReportFacts(
        hot_scalar=loop.scalar,
        hot_bytes=loop.bytes,
        width_times=cpu.vector_bytes / loop.bytes,
        hot_spills=loop.spills,
        hot_sums=loop.sums,
        sum_times=SUMS / threads / loop.sums if loop.sums else None,
        hot_gathers=loop.gathers,
        hot_calls=loop.calls,
    )
    return _together([of_code, of_loop])


def _amx_times(assignment: Assignment) -> float | None:
    """Return the measured rate of AMX over that of vectors; None if it was not measured."""
    peaks = assignment.cpu.measured
    if peaks is None or not peaks.gflops.get("fp32") or not peaks.units.get("bf16", "").startswith("AMX"):
        return None
    return peaks.gflops["bf16"] / peaks.gflops["fp32"]
