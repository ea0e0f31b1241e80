"""Examples for the prompts in docs/prompts on a CPU: fp8 GEMM and a KernelBench file in C++.

Problems and seeds are real; machine, times and failures are made up.
"""

from collections.abc import Mapping, Sequence

from kernel_scientist import problems
from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.hardware.measured import MeasuredPeaks
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
    CompileReport,
    Evaluation,
    PairedTime,
    Speedup,
    Timing,
    Trial,
)
from kernel_scientist.records.kernel import REFERENCE, Case, Experiment, Kernel, Language, Verdict
from kernel_scientist.records.params import Knowledge
from kernel_scientist.scientist import knowledge, symptoms
from kernel_scientist.scientist.proposals import missing, placeholder
from kernel_scientist.scientist.roles import Assignment, CpuInfo

FP8, FILE = "fp8-blockwise-gemm", "docs/prompts/files/1_Linear_GELU_LayerNorm.py"
DRAFT = "docs/prompts/files/fused_rows.py"
FEATURES = (
    *("avx2", "fma", "f16c", "gfni", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_bf16"),
    *("avx512_fp16", "avx512_vnni", "avx512vbmi", "avx512_vbmi2", "amx_bf16"),
)
CPU = CpuInfo(
    caches={"L1": 48 << 10, "L2": 2 << 20, "L3": 32 << 20},
    features=frozenset((*FEATURES, "amx_tile", "amx_int8")),
    vector_bytes=64,
    cores=2,
    model="Intel(R) Xeon(R) Platinum 8488C",
    generation="Sapphire Rapids",
    clock="3.8 GHz at most",
    physical=1,
    shared=frozenset({"L3"}),
    measured=MeasuredPeaks(
        machine="Intel(R) Xeon(R) Platinum 8488C",
        cores=2,
        gflops={"fp32": 229, "bf16": 3580, "int8": 7150},
        units={"fp32": "AVX-512 fma", "bf16": "AMX tdpbf16ps", "int8": "AMX tdpbssd"},
        memory_gbps=13.9,
        copy_gbps=17.2,
        cache_gbps=205,
        clock_ghz=3.79,
        date="2026-01-01",
        load="0.2",
        others_percent="1",
    ),
)
_PER_NS = CPU.cores * CPU_CLOCK_GHZ
PEAKS = Machine(
    "example",
    CPU_MEMORY_GBPS,
    {name: rate * _PER_NS for name, rate in operations_per_clock(CPU.features, CPU.vector_bytes).items()},
    bound_gbps=BYTES_PER_CLOCK * _PER_NS,
)
OPERATORS = {"addmm": 0.69, "gelu": 0.15, "native_layer_norm": 0.07, "add": 0.05, "linear": 0.02}
"""Shares of the reference's operators in its time."""
SIX_ROWS = Experiment(
    title="six rows per register tile",
    description="A register tile of 4 x 8 loads five vectors for four FMAs, one of 6 x 8 seven for six: at two loads "
    "a clock 0.58 clocks an FMA instead of 0.63.",
    rubric=("set MR to 6",),
    uplift=(5, 15),
    innovation=25,
)
DECODE = Experiment(
    title="decode fp8 by way of fp16",
    description="fp16 has the bits (x & 0x80) << 8 and (x & 0x7f) << 7, times 2^7: eight values at a time, no table "
    "load for each while B is packed.",
    rubric=("decode eight values at a time by F16C in decode_row", "0x80 stays a NaN", "the rest by the table"),
    uplift=(3, 15),
    innovation=70,
)
DOTS = Experiment(
    title="bf16 dot products",
    description="vdpbf16ps multiplies twice as many values per instruction as fp32 FMA.",
    rubric=(
        "pack pairs along k as bf16, with the scales folded in",
        "replace the FMAs of the micro-kernel by _mm512_dpbf16_ps",
    ),
    uplift=(30, 90),
    innovation=60,
)
DECLINED = (
    "scales that are folded into bf16 operands round them by up to 2^-8 each: beyond the tolerance where sums cancel"
)
FUSED = Experiment(
    title="all that follows the linear layer in one pass",
    description="GELU, the row's mean and variance, the normalisation and the sum are computed while a row is in L1: "
    "the reference writes and reads two intermediates of 192 KiB between these operators.",
    rubric=(
        "torch.nn.functional.linear, then one C++ function, rows divided among the threads",
        "tanh by an exponential as a polynomial, on vectors",
        "exact two-pass variance within the row",
    ),
    uplift=(15, 35),
    innovation=60,
)
BY_FP16 = """static inline void decode_row(const uint8_t* x, float* out, int64_t count) {
    int64_t j = 0;
    for (; j + 8 <= count; j += 8) {
        __m128i bytes = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i*)(x + j)));
        __m128i sign = _mm_slli_epi16(_mm_and_si128(bytes, _mm_set1_epi16(0x80)), 8);
        __m128i size = _mm_slli_epi16(_mm_and_si128(bytes, _mm_set1_epi16(0x7f)), 7);
        __m256 value = _mm256_mul_ps(_mm256_cvtph_ps(_mm_or_si128(sign, size)), _mm256_set1_ps(128.0f));
        __m128i nan = _mm_cmpeq_epi16(bytes, _mm_set1_epi16(0x80));
        _mm256_storeu_ps(out + j, _mm256_or_ps(value, _mm256_castsi256_ps(_mm256_cvtepi16_epi32(nan))));
    }
    for (; j < count; ++j) out[j] = table.value[x[j]];
}
"""
"""The experiment `DECODE`; the file does not include the header that it needs."""
BY_TABLE = """static inline void decode_row(const uint8_t* x, float* out, int64_t count) {
    for (int64_t j = 0; j < count; ++j) out[j] = table.value[x[j]];
}
"""


def fp8() -> tuple[Assignment, Population]:
    """Return fp8 GEMM in C++: two seeds, an experiment that succeeded, one that was declined, one that failed."""
    problem = problems.find(FP8)
    times = _reference_us(problem, problem.profile("cpu").benchmarks, PEAKS, 150)
    naive, blocked = (file.read_text() for file in problem.seeds("cpp"))
    taller = KernelSource(blocked).with_tunables({"MR": 6}).text
    broken = taller.replace(BY_TABLE, BY_FP16, 1)
    log = "kernel.cpp:31:9: error: '__m128i' was not declared in this scope"
    refused = Evaluation(
        verdict=Verdict.COMPILE_ERROR,
        reason=f"CompileError in its import: {log}",
        evidence=(f"Traceback (most recent call last):\n  ...\nCompileError: {log}",),
        compile=CompileReport(ok=False, compiler="g++", log=log),
    )
    declined = Evaluation(verdict=Verdict.DECLINED, reason=DECLINED)
    kernels = (
        (kernel("cpp", 1, naive), _timed(times, 0.02)),
        (kernel("cpp", 2, blocked), _timed(times, 0.95, against=("k00001", 0.02))),
        (
            kernel("cpp", 3, taller, 2, SIX_ROWS, "MR is 6."),
            _timed(times, 1.02, against=("k00002", 0.95)),
        ),
        (kernel("cpp", 4, placeholder("write/k00004", DECLINED), 2, DOTS), declined),
        (kernel("cpp", 5, broken, 3, DECODE), refused),
    )
    return assignment(problem), population(kernels)


def kernelbench() -> tuple[Assignment, Population]:
    """Return a KernelBench file in C++: the reference as a kernel, and a first experiment whose writer sent nothing."""
    problem = problems.find(str(environment.root() / FILE))
    (wrapped,) = (file.read_text() for file in problem.seeds("cpp"))
    times = _reference_us(problem, problem.profile("cpu").benchmarks, PEAKS, 6)
    silent = placeholder("write/k00002", "the writer sent no kernel: the reply is empty")
    nothing = Evaluation(verdict=Verdict.ABSENT, reason=missing(silent))
    kernels = (
        (kernel("cpp", 1, wrapped), _timed(times, 1.0)),
        (kernel("cpp", 2, silent, 1, FUSED), nothing),
    )
    return assignment(problem), population(kernels)


def fp8_drafts() -> list[str]:
    """Return two drafts of the experiment that failed: the one without a header, and a right one."""
    broken = fp8()[1].latest(1)[-1].kernel.source
    return [broken, broken.replace("#include <algorithm>", "#include <algorithm>\n#include <immintrin.h>", 1)]


def kernelbench_drafts() -> list[str]:
    """Return two drafts of the first experiment: one divides the variance by one less than the row's length."""
    right = (environment.root() / DRAFT).read_text()
    return [right.replace("squares / n +", "squares / (n - 1) +", 1), right]


def assignment(problem: Problem) -> Assignment:
    """Return the assignment: kernels in C++ on a CPU with AMX."""
    return Assignment(
        problem=problem,
        profile=problem.profile("cpu"),
        language="cpp",
        target="cpu",
        cpu=CPU,
        peaks=PEAKS,
        knowledge=(documents := knowledge.load(folders := [environment.root() / path for path in Knowledge().paths])),
        knowledge_tokens=Knowledge().tokens,
        symptoms=symptoms.load(folders, documents),
        most_findings=Knowledge().findings,
        compiler="g++ (Debian 12.2.0-14) 12.2.0",
        operators=OPERATORS if problem.adapter else {},
    )


def population(kernels: Sequence[tuple[Kernel, Evaluation]]) -> Population:
    """Return the population of these kernels and their evaluations."""
    return Population(tuple(Trial(kernel=kernel, evaluation=evaluation) for kernel, evaluation in kernels))


def kernel(
    language: Language,
    number: int,
    source: str,
    base: int = 0,
    experiment: Experiment | None = None,
    report: str = "",
) -> Kernel:
    """Return the kernel of a number; an experiment is on the kernel `base`."""
    return Kernel(
        name=f"k{number:05d}",
        language=language,
        source=source,
        base=f"k{base:05d}" if base else None,
        reference=f"k{max(base - 1, 1):05d}" if base else None,
        experiment=experiment,
        generation=max(number - 2, 0),
        report=report,
    )


def _timed(
    reference_us: Mapping[str, float],
    ratio: float,
    against: tuple[str, float] = ("", 0.0),
) -> Evaluation:
    """Return a kernel's times: `ratio` times the reference's speed, and a pair with its base if it has one."""
    times = {case: us / ratio for case, us in reference_us.items()}
    timings = tuple(Timing(case=case, time_us=us, interval_us=(0.98 * us, 1.02 * us)) for case, us in times.items())
    speedups = [_speedup(times, REFERENCE, ratio)]
    if against[0]:
        speedups.append(_speedup(times, against[0], ratio / against[1]))
    return Evaluation(verdict=Verdict.OK, timings=timings, speedups=tuple(speedups))


def _speedup(times: Mapping[str, float], against: str, ratio: float) -> Speedup:
    interval = ratio * 0.97, ratio * 1.03
    pairs = {case: PairedTime(time_us=us, against_us=us * ratio, interval=interval) for case, us in times.items()}
    return Speedup(against=against, ratio=ratio, interval=interval, cases=pairs)


def _reference_us(problem: Problem, cases: Sequence[Case], machine: Machine, slower: float) -> dict[str, float]:
    """Return the reference's time by case: 100 us, and `slower` times the roofline floor."""
    return {case.name: slower * roofline_us(problem.work(case), machine) + 100 for case in cases}
