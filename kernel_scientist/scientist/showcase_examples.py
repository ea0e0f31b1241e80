"""Examples for the showcase beside the one of a model target: fp8 GEMM and a KernelBench file in C++ on a CPU, HIP.

Problems, seeds and machines are real; times, code sizes and failures are made up.
"""

from collections.abc import Mapping, Sequence

from kernel_scientist import problems
from kernel_scientist.compile.source import KernelSource
from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.hardware.peaks import (
    BYTES_PER_CLOCK,
    CPU_CLOCK_GHZ,
    CPU_MEMORY_GBPS,
    Machine,
    operations_per_clock,
    roofline_us,
)
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import (
    CodeObject,
    CompileReport,
    Evaluation,
    Launch,
    PairedTime,
    Speedup,
    Timing,
    Trial,
)
from kernel_scientist.records.kernel import REFERENCE, Case, Experiment, Kernel, Language, Verdict
from kernel_scientist.records.params import Knowledge
from kernel_scientist.scientist import knowledge
from kernel_scientist.scientist.proposals import missing, placeholder
from kernel_scientist.scientist.roles import Assignment, CpuInfo

FP8, FILE = "fp8-blockwise-gemm", "docs/prompts/files/1_Linear_GELU_LayerNorm.py"
FEATURES = ("avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "avx512_vnni", "avx512_vbmi", "amx_bf16")
CPU = CpuInfo(
    caches={"L1": 48 << 10, "L2": 2 << 20, "L3": 32 << 20},
    features=frozenset((*FEATURES, "amx_tile", "amx_int8")),
    vector_bytes=64,
    cores=2,
    model="a server processor",
)
_PER_NS = CPU.cores * CPU_CLOCK_GHZ
PEAKS = Machine(
    "example",
    CPU_MEMORY_GBPS,
    {name: rate * _PER_NS for name, rate in operations_per_clock(CPU.features, CPU.vector_bytes).items()},
    bound_gbps=BYTES_PER_CLOCK * _PER_NS,
)
DEEPER = Experiment(
    title="deeper panels",
    description="KC 256 halves the passes over C.",
    rubric=("set KC to 256",),
    uplift=(5, 15),
    innovation=25,
)
DECODE = Experiment(
    title="decode fp8 in registers",
    description="A byte permute decodes 64 values at once: 2 loads fewer per value while packing.",
    rubric=("replace the table look-up of the decoding loop by _mm512_permutexvar_epi8",),
    uplift=(10, 40),
    innovation=70,
)
DOTS = Experiment(
    title="bf16 dot products",
    description="vdpbf16ps multiplies twice as many values per instruction as fp32 FMA.",
    rubric=("pack pairs along k as bf16", "replace the FMAs of the micro-kernel by _mm512_dpbf16_ps"),
    uplift=(30, 90),
    innovation=60,
)
OVERTAKEN = "this machine has AMX, whose bf16 products are 8 times as fast as those of vdpbf16ps"
FUSED = Experiment(
    title="one fused kernel with bf16 tiles",
    description="x and the weight are split into two bf16 parts each and multiplied by AMX; GELU, the row's mean and "
    "variance and the sum are computed while a block of 16 rows is in L2: 5 passes over memory fewer.",
    rubric=("split and pack the weight once per call", "16 rows per step and thread", "normalise the rows in place"),
    uplift=(100, 300),
    innovation=90,
)
WIDER = Experiment(
    title="eight columns per workgroup",
    description="Its waves read the same bytes of A, which then come from L1 for 8 columns instead of 4: half as many "
    "reads of A from L2.",
    rubric=("set TILE_N to 8",),
    uplift=(20, 60),
    innovation=20,
)
SCALES = Experiment(
    title="scales in LDS",
    description="The scales of a block of columns are read once per workgroup.",
    rubric=("copy them to __shared__ memory before the loop over k",),
    uplift=(5, 20),
    innovation=40,
)


def fp8_on_cpu() -> tuple[Assignment, Population]:
    """Return fp8 GEMM in C++: two seeds, an experiment that succeeded, one that was declined, one that failed."""
    problem = problems.find(FP8)
    floors = _floors(problem, problem.profile("cpu").benchmarks, PEAKS)
    naive, blocked = (file.read_text() for file in problem.seeds("cpp"))
    deeper = KernelSource(blocked).with_tunables({"KC": 256}).text
    broken = deeper.replace("<cstdint>", "<hip_fp8.h>", 1)
    log = "kernel.cpp:4:10: fatal error: hip_fp8.h: No such file or directory"
    refused = Evaluation(
        verdict=Verdict.COMPILE_ERROR,
        reason=f"CompileError in its import: {log}",
        evidence=(f"Traceback (most recent call last):\n  ...\nCompileError: {log}",),
        compile=CompileReport(ok=False, compiler="g++", log=log),
    )
    declined = Evaluation(verdict=Verdict.DECLINED, reason=OVERTAKEN)
    kernels = (
        (_kernel("cpp", 1, naive), _timed(floors, 0.1)),
        (_kernel("cpp", 2, blocked), _timed(floors, 3.9, against=("k00001", 0.1))),
        (_kernel("cpp", 3, deeper, 2, DEEPER), _timed(floors, 4.3, against=("k00002", 3.9))),
        (_kernel("cpp", 4, placeholder("write/k00004", OVERTAKEN), 2, DOTS), declined),
        (_kernel("cpp", 5, broken, 3, DECODE), refused),
    )
    return _on_cpu(problem), _population(kernels)


def kernelbench_on_cpu() -> tuple[Assignment, Population]:
    """Return a KernelBench file in C++: the reference as a kernel, and a first experiment whose writer sent nothing."""
    problem = problems.find(str(environment.root() / FILE))
    (wrapped,) = (file.read_text() for file in problem.seeds("cpp"))
    floors = _floors(problem, problem.profile("cpu").benchmarks, PEAKS)
    silent = placeholder("write/k00002", "the writer sent no kernel: the reply is empty")
    nothing = Evaluation(verdict=Verdict.ABSENT, reason=missing(silent))
    kernels = (
        (_kernel("cpp", 1, wrapped), _timed(floors, 0.95)),
        (_kernel("cpp", 2, silent, 1, FUSED), nothing),
    )
    return _on_cpu(problem), _population(kernels)


def hip() -> tuple[Assignment, Population]:
    """Return fp8 GEMM in HIP on MI300X: the seed, an experiment that succeeded, and one that failed."""
    problem = problems.find(FP8)
    cases = problem.profile("full").benchmarks
    floors = _floors(problem, cases, MI300X)
    (naive,) = (file.read_text() for file in problem.seeds("hip") if file.stem == "hip_naive")
    wider = naive.replace("TILE_N = 4", "TILE_N = 8", 1)
    wrong = Evaluation(
        verdict=Verdict.INCORRECT,
        reason="m64-n64-k128: 3584 of 4096 elements differ, first at [0, 1]: 0, expected 12.25",
    )
    kernels = (
        (_kernel("hip", 1, naive), _timed(floors, 0.2, report=_code(cases, 4))),
        (
            _kernel("hip", 2, wider, 1, WIDER),
            _timed(floors, 0.27, against=("k00001", 0.2), report=_code(cases, 8)),
        ),
        (_kernel("hip", 3, _with_scales_in_lds(wider), 2, SCALES), wrong),
    )
    documents = knowledge.load([environment.root() / path for path in Knowledge().paths])
    assignment = Assignment(
        problem=problem,
        profile=problem.profile("full"),
        language="hip",
        target="rocm",
        cpu=CPU,
        peaks=MI300X,
        gpu=MI300X,
        knowledge=documents,
        knowledge_tokens=Knowledge().tokens,
        most_findings=Knowledge().findings,
        published={},
        compiler="HIP version: 6.4.43483",
    )
    return assignment, _population(kernels)


def _with_scales_in_lds(source: str) -> str:
    """Return the kernel with the column's scales in LDS, but without the barrier that this needs."""
    copy = (
        "    __shared__ float scales[128];\n"
        "    int lane = threadIdx.y * TILE_M + threadIdx.x;\n"
        "    if (lane < k / SCALED) scales[lane] = b_scale[lane * columns + j / SCALED];\n"
    )
    source = source.replace("    float sum = 0;\n", f"{copy}    float sum = 0;\n", 1)
    return source.replace("b_scale[block * columns + j / SCALED];\n    }", "scales[block];\n    }", 1)


def _on_cpu(problem: Problem) -> Assignment:
    return Assignment(
        problem=problem,
        profile=problem.profile("cpu"),
        language="cpp",
        target="cpu",
        cpu=CPU,
        peaks=PEAKS,
        knowledge=knowledge.load([environment.root() / path for path in Knowledge().paths]),
        knowledge_tokens=Knowledge().tokens,
        most_findings=Knowledge().findings,
    )


def _population(kernels: Sequence[tuple[Kernel, Evaluation]]) -> Population:
    return Population(tuple(Trial(kernel=kernel, evaluation=evaluation) for kernel, evaluation in kernels))


def _kernel(
    language: Language, number: int, source: str, base: int = 0, experiment: Experiment | None = None
) -> Kernel:
    return Kernel(
        name=f"k{number:05d}",
        language=language,
        source=source,
        base=f"k{base:05d}" if base else None,
        reference=f"k{max(base - 1, 1):05d}" if base else None,
        experiment=experiment,
        generation=max(number - 2, 0),
    )


def _timed(
    floors: Mapping[str, float],
    ratio: float,
    against: tuple[str, float] = ("", 0.0),
    report: CompileReport | None = None,
) -> Evaluation:
    """Return a kernel's times: `ratio` times the reference's speed, and a pair with its base if it has one.

    floors: roofline floor by case, in microseconds. The reference takes 60 times as long, and 100 us.
    """
    times = {case: (60 * floor + 100) / ratio for case, floor in floors.items()}
    timings = tuple(Timing(case=case, time_us=us, interval_us=(0.98 * us, 1.02 * us)) for case, us in times.items())
    speedups = [_speedup(times, REFERENCE, ratio)]
    if against[0]:
        speedups.append(_speedup(times, against[0], ratio / against[1]))
    return Evaluation(verdict=Verdict.OK, timings=timings, speedups=tuple(speedups), compile=report)


def _speedup(times: Mapping[str, float], against: str, ratio: float) -> Speedup:
    pairs = {case: PairedTime(time_us=us, against_us=us * ratio) for case, us in times.items()}
    return Speedup(against=against, ratio=ratio, interval=(ratio * 0.97, ratio * 1.03), cases=pairs)


def _floors(problem: Problem, cases: Sequence[Case], machine: Machine) -> dict[str, float]:
    return {case.name: roofline_us(problem.work(case), machine) for case in cases}


def _code(cases: Sequence[Case], waves: int) -> CompileReport:
    code = CodeObject(
        kernel="gemm_kernel",
        arch="gfx942",
        digest="",
        num_warps=waves,
        vgpr=40,
        sgpr=36,
        lds_bytes=0,
        code_bytes=2100,
        occupancy=8,
        limited_by="waves",
        mix=({"valu": 60, "salu": 30}, {"valu": 10, "vmem_load 8": 2, "salu": 6, "wait": 4, "branch": 1}),
    )
    grids = [(c.name, (c.whole("m") // 64, c.whole("n") // waves, 1)) for c in cases]
    launches = [Launch(case=case, kernel=code.kernel, grid=grid, num_warps=waves, code=0) for case, grid in grids]
    return CompileReport(ok=True, compiler="hipcc", objects=(code,), launches=tuple(launches))
