"""Examples for the showcase beside the one of a model target: fp8 GEMM and a KernelBench file in C++ on a CPU, HIP.

Problems, seeds and machines are real; times, code sizes and failures are made up.
"""

from collections.abc import Sequence

from kernel_scientist import problems
from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.hardware.peaks import Machine
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
from kernel_scientist.scientist.context import knowledge
from kernel_scientist.scientist.proposals import missing, placeholder
from kernel_scientist.scientist.roles import Assignment, CpuInfo

FP8, FILE = "fp8-blockwise-gemm", "docs/prompts/files/1_Linear_GELU_LayerNorm.py"
PEAKS = Machine("example", 600, {"fp32": 704, "bf16": 1408, "fp8": 1408})
FEATURES = ("avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "avx512_vnni", "avx512_vbmi", "amx_bf16")
CPU = CpuInfo(
    caches={"L1": 48 << 10, "L2": 2 << 20, "L3": 32 << 20},
    features=frozenset((*FEATURES, "amx_tile", "amx_int8")),
    vector_bytes=64,
    cores=2,
    model="a server processor",
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
OVERTAKEN = "k00003 already multiplies with vdpbf16ps"
FUSED = Experiment(
    title="one fused kernel with bf16 tiles",
    description="x and the weight are split into two bf16 parts each and multiplied by AMX; GELU, the row's mean and "
    "variance and the sum are computed while a block of 16 rows is in L2: 5 passes over memory fewer.",
    rubric=("split and pack the weight once per call", "16 rows per step and thread", "normalise the rows in place"),
    uplift=(100, 300),
    innovation=90,
)
WIDER = Experiment(
    title="eight columns per lane",
    description="Each byte of A is then used for 8 products instead of 4: half as many loads of A.",
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
    cases = problem.profile("cpu").benchmarks
    naive, blocked = (file.read_text() for file in problem.seeds("cpp"))
    broken = blocked.replace("<cstdint>", "<hip_fp8.h>", 1)
    log = "kernel.cpp:3:10: fatal error: hip_fp8.h: No such file or directory"
    refused = Evaluation(
        verdict=Verdict.COMPILE_ERROR,
        reason=f"CompileError in its import: {log}",
        evidence=(f"Traceback (most recent call last):\n  ...\nCompileError: {log}",),
        compile=CompileReport(ok=False, compiler="g++", log=log),
    )
    declined = Evaluation(verdict=Verdict.DECLINED, reason=OVERTAKEN)
    kernels = (
        (_kernel("cpp", 1, naive), _timed(cases, 0.1)),
        (_kernel("cpp", 2, blocked), _timed(cases, 3.9, against=("k00001", 0.1))),
        (_kernel("cpp", 3, blocked + "# KC 256\n", 2, DEEPER), _timed(cases, 4.3, against=("k00002", 3.9))),
        (_kernel("cpp", 4, placeholder("write/k00004", OVERTAKEN), 2, DOTS), declined),
        (_kernel("cpp", 5, broken, 3, DECODE), refused),
    )
    return _on_cpu(problem), _population(kernels)


def kernelbench_on_cpu() -> tuple[Assignment, Population]:
    """Return a KernelBench file in C++: the reference as a kernel, and a first experiment whose writer sent nothing."""
    problem = problems.find(str(environment.root() / FILE))
    (wrapped,) = (file.read_text() for file in problem.seeds("cpp"))
    silent = placeholder("write/k00002", "the writer sent no kernel: the reply is empty")
    nothing = Evaluation(verdict=Verdict.COMPILE_ERROR, reason=f"SyntaxError in its import: {missing(silent)}")
    kernels = (
        (_kernel("cpp", 1, wrapped), _timed(problem.profile("cpu").benchmarks, 0.95)),
        (_kernel("cpp", 2, silent, 1, FUSED), nothing),
    )
    return _on_cpu(problem), _population(kernels)


def hip() -> tuple[Assignment, Population]:
    """Return fp8 GEMM in HIP on MI300X: the seed, an experiment that succeeded, and one that failed."""
    problem = problems.find(FP8)
    cases = problem.profile("full").benchmarks
    (naive,) = (file.read_text() for file in problem.seeds("hip"))
    wider = naive.replace("TILE_N = 4", "TILE_N = 8", 1)
    wrong = Evaluation(
        verdict=Verdict.INCORRECT,
        reason="m64-n1536-k7168: 49152 of 98304 elements differ, first at [0, 128]: -3.5, expected 12.25",
    )
    kernels = (
        (_kernel("hip", 1, naive), _timed(cases, 0.2, report=_code(cases, 40))),
        (
            _kernel("hip", 2, wider, 1, WIDER),
            _timed(cases, 0.27, against=("k00001", 0.2), report=_code(cases, 64)),
        ),
        (_kernel("hip", 3, wider.replace("SCALED = 128", "SCALED = 64", 1), 2, SCALES), wrong),
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
    )
    return assignment, _population(kernels)


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
    cases: Sequence[Case],
    ratio: float,
    against: tuple[str, float] = ("", 0.0),
    report: CompileReport | None = None,
) -> Evaluation:
    """Return a kernel's times: `ratio` times the reference's speed, and a pair with its base if it has one."""
    us = 1000 / ratio
    timings = tuple(Timing(case=c.name, time_us=us, interval_us=(us, us)) for c in cases)
    speedups = [_speedup(cases, REFERENCE, ratio, us)]
    if against[0]:
        speedups.append(_speedup(cases, against[0], ratio / against[1], us))
    return Evaluation(verdict=Verdict.OK, timings=timings, speedups=tuple(speedups), compile=report)


def _speedup(cases: Sequence[Case], against: str, ratio: float, us: float) -> Speedup:
    times = {c.name: PairedTime(time_us=us, against_us=us * ratio) for c in cases}
    return Speedup(against=against, ratio=ratio, interval=(ratio * 0.97, ratio * 1.03), cases=times)


def _code(cases: Sequence[Case], registers: int) -> CompileReport:
    code = CodeObject(
        kernel="gemm_kernel",
        arch="gfx942",
        digest="",
        num_warps=4,
        vgpr=registers,
        sgpr=36,
        lds_bytes=0,
        code_bytes=2100,
        occupancy=8,
        limited_by="waves",
        mix=({"valu": 60, "salu": 30}, {"valu": 90, "vmem_load 8": registers // 8, "salu": 6, "wait": 4, "branch": 1}),
    )
    launches = [
        Launch(case=c.name, kernel=code.kernel, grid=(c.whole("m") // 64, c.whole("n") // 4, 1), num_warps=4, code=0)
        for c in cases
    ]
    return CompileReport(ok=True, compiler="hipcc", objects=(code,), launches=tuple(launches))
