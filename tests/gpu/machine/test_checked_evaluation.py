"""Checking runs through the evaluator: what a kernel's machine code does to memory reaches its verdict."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.predicted import PredictedEvaluator
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.hardware import gpus
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.scientist.context import bug_taxonomy
from kernel_scientist.workers import prepared
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

TOOLS = hip.find()
needs_hip = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n"
SEED = (
    HEAD + "def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n"
    "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)\n\n\n"
    "def custom_kernel(data):\n    x, out = data\n    n = x.numel()\n"
    "    copy[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)\n    return out\n"
)


AUTOTUNED = SEED.replace(
    "@triton.jit",
    "CONFIGS = [triton.Config({'BLOCK': size}, num_warps=size // 64) for size in (64, 256, 2048, 512)]\n\n\n"
    "@triton.autotune(CONFIGS, key=['n'])\n@triton.jit",
).replace(
    "copy[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)", "copy[lambda c: (triton.cdiv(n, c['BLOCK']),)](x, out, n)"
)
"""Four configurations, of which one has more waves than a workgroup may have."""
HIP = (ROOT / "problems/identity/seeds/hip_naive.py").read_text()
GUARDED = "if (i < size) out[i] = x[i];"
LINE = next(n for n, line in enumerate(HIP.splitlines(), 1) if GUARDED in line)
EXCHANGE = (
    "__shared__ unsigned short s[LANES]; s[threadIdx.x] = i < size ? x[i] : 0; "
    "if (i < size) out[i] = s[threadIdx.x ^ 64];"
)
READS = (
    "if (i < size) out[i] = x[i]; "
    "volatile int odd = 0; if (__builtin_amdgcn_readfirstlane(i < size ? x[i] : 0) != 0) odd = 1;"
)
"""A branch depends on what is read."""
STATIC = """    static unsigned short* kept = nullptr;
    if (!kept) (void)hipMalloc(&kept, 2 * 5000);
    %s
    copy_kernel<<<1, LANES>>>(kept, (unsigned short*)out.data_ptr(), size < 256 ? size : 256);
    copy_kernel<<<dim3("""


BY_HAND = """if (i < size) {
        unsigned v;
        asm volatile("global_load_ushort %0, %1, off" : "=v"(v) : "v"(x + i));
        out[i] = v;
    }"""


@pytest.fixture(scope="module")
def evaluator() -> Iterator[PredictedEvaluator]:
    problem = problems.find("identity")
    harness = Harness(call_timeout_s=60, import_timeout_s=60, noise_runs=0, executed_s=0)
    settings = prepared.simulated(problem, gpus.MI300X, threads=1)
    with WorkerPool(harness, "cpu", machine=settings) as pool:
        evaluator = PredictedEvaluator(problem, "auto", harness, pool, gpus.MI300X)
        evaluator.profile = replace(evaluator.profile, vary={"size": (1, 5000, 1)})
        yield evaluator


def evaluated(evaluator: PredictedEvaluator, source: str) -> Evaluation:
    kernel = Kernel(name="k", language="hip" if "__global__" in source else "triton", source=source)
    return evaluator.check(kernel, Evaluation(verdict=Verdict.OK, by_model=True))


def test_a_sound_kernel_is_right_and_covered(evaluator: PredictedEvaluator) -> None:
    found = evaluated(evaluator, SEED)
    assert found.verdict is Verdict.OK, found.reason


def test_every_configuration_of_an_autotuner_is_checked(evaluator: PredictedEvaluator) -> None:
    found = evaluated(evaluator, AUTOTUNED)
    assert found.verdict is Verdict.OK and "in 4 of 4 configurations of the autotuner" in found.coverage, found
    wrong = AUTOTUNED.replace("mask=at < n)\n", "mask=(at < n) & ((BLOCK < 512) | (at % 512 < 511)))\n")
    found = evaluated(evaluator, wrong)
    assert found.verdict is Verdict.INCORRECT and "copy with BLOCK: 512, num_warps: 8" in found.reason, found


def test_a_configurations_hook_is_called_before_its_launch(evaluator: PredictedEvaluator) -> None:
    adds = AUTOTUNED.replace("mask=at < n), mask", "mask=at < n) + tl.load(out_ptr + at, mask=at < n), mask")
    assert evaluated(evaluator, adds).verdict is Verdict.INCORRECT
    hooked = adds.replace(
        "num_warps=size // 64", "num_warps=size // 64, pre_hook=lambda given: given['out_ptr'].zero_()"
    )
    assert evaluated(evaluator, hooked).verdict is Verdict.OK


@pytest.mark.parametrize(
    ("before", "after", "kind", "line", "bug"),
    [
        (", mask=at < n), mask", "), mask", "out-of-bounds read", 9, "B.3"),
        ("mask=at < n), mask=at < n)", "mask=at < n))", "out-of-bounds write", 9, "B.3"),
        ("out_ptr + at,", "out_ptr + at % 256,", "write race", 9, "C.1"),
        ("tl.load(x_ptr", "tl.load(out_ptr", "uninitialised read", 9, "B.2"),
    ],
)
def test_a_defect_is_incorrect_with_its_line(
    evaluator: PredictedEvaluator, before: str, after: str, kind: str, line: int, bug: str
) -> None:
    found = evaluated(evaluator, SEED.replace(before, after))
    assert found.verdict is Verdict.INCORRECT
    assert kind in found.reason and f"line {line}" in found.reason and "_ptr in copy" in found.reason, found.reason
    assert bug_taxonomy.classify(found).id == bug


def test_programs_that_wait_for_ever_are_told(evaluator: PredictedEvaluator) -> None:
    waits = "    while tl.atomic_add(flag_ptr, 0) == 0:\n        pass\n"
    source = SEED.replace("    at = tl.program_id", f"{waits}    at = tl.program_id").replace(
        "out_ptr, n,", "out_ptr, flag_ptr, n,"
    )
    source = source.replace("(x, out, n,", "(x, out, torch.zeros(1, dtype=torch.int32, device=x.device), n,")
    found = evaluated(evaluator, source)
    assert found.verdict is Verdict.INCORRECT and "deadlock of flag_ptr in copy, line 8" in found.reason, found.reason
    assert bug_taxonomy.classify(found).id == "B.5"


@needs_hip
def test_a_launched_kernel_that_lacks_a_wait_is_incorrect_although_its_values_are_right(
    evaluator: PredictedEvaluator,
) -> None:
    source = HIP.replace(GUARDED, BY_HAND)
    kernel = Kernel(name="k", language="hip", source=source)
    found = evaluator.check(kernel, evaluator.compile(kernel))
    assert found.verdict is Verdict.INCORRECT and "`s_waitcnt vmcnt(0)` is missing" in found.reason, found.reason


@needs_hip
def test_a_sound_hip_kernel_is_right_and_covered(evaluator: PredictedEvaluator) -> None:
    found = evaluated(evaluator, HIP)
    assert found.verdict is Verdict.OK, found.reason
    assert "every address checked, all of them for races" in found.coverage
    filled = STATIC % "(void)hipMemsetAsync(kept, 0, 2 * 5000, 0);"
    found = evaluated(evaluator, HIP.replace("    copy_kernel<<<dim3(", filled).replace(GUARDED, READS))
    assert found.verdict is Verdict.OK, found.reason


@needs_hip
@pytest.mark.parametrize(
    ("after", "kind", "tensor", "words"),
    [
        ("if (i < size) out[i] = x[i + 1];", "out-of-bounds read", "input 0", "which has"),
        ("out[i] = i < size ? x[i] : 0;", "out-of-bounds write", "input 1", "which has"),
        (EXCHANGE, "write race", "LDS", "no barrier"),
        (
            READS.partition("; ")[2].replace("x[i]", "out[i]") + GUARDED,
            "uninitialised read",
            "input 1",
            "nothing has written",
        ),
        ("if (i < size) out[i % 512] = x[i];", "write race", "input 1", "no release and acquire"),
    ],
)
def test_a_defect_of_a_hip_kernel_has_the_line_of_its_file(
    evaluator: PredictedEvaluator, after: str, kind: str, tensor: str, words: str
) -> None:
    found = evaluated(evaluator, HIP.replace(GUARDED, after))
    assert found.verdict is Verdict.INCORRECT
    assert f"{kind} of {tensor}" in found.reason and f"in copy_kernel, line {LINE} (" in found.reason, found.reason
    assert words in found.reason and after[:60] in found.reason, found.reason


@needs_hip
def test_a_defect_in_a_small_inlined_function_is_told_by_the_line_that_calls_it(evaluator: PredictedEvaluator) -> None:
    helper = "__device__ unsigned short loaded(const unsigned short* p, long at) { return p[at]; }"
    call = "if (i < size) out[i] = loaded(x, i + 1);"
    source = HIP.replace("__global__ __launch", f"{helper}\n\n__global__ __launch").replace(GUARDED, call)
    found = evaluated(evaluator, source)
    where = f"line {LINE + 2} ({call}  // fp16 as bits), by the function inlined there, line {LINE - 2} ({helper})"
    assert found.verdict is Verdict.INCORRECT and where in found.reason, found.reason
    triton = SEED.replace(
        "@triton.jit\n", "@triton.jit\ndef loaded(ptr, at):\n    return tl.load(ptr + at)\n\n\n@triton.jit\n"
    )
    triton = triton.replace("tl.load(x_ptr + at, mask=at < n)", "loaded(x_ptr, at)")
    found = evaluated(evaluator, triton)
    lines = triton.splitlines()
    call, inner = (next(n for n, line in enumerate(lines, 1) if text in line) for text in ("loaded(x_ptr", "tl.load("))
    where = f"line {call} ({lines[call - 1].strip()}), by the function inlined there, line {inner} ("
    assert found.verdict is Verdict.INCORRECT and where in found.reason, found.reason


@needs_hip
def test_a_program_may_allocate_far_more_than_it_uses(evaluator: PredictedEvaluator) -> None:
    large = STATIC.replace("2 * 5000", "6000000000L")
    source = HIP.replace("    copy_kernel<<<dim3(", large % "(void)hipMemsetAsync(kept, 0, 2 * 5000, 0);")
    found = evaluated(evaluator, source.replace(GUARDED, READS))
    assert found.verdict is Verdict.OK, found.reason
    beyond = "(void)hipMemsetAsync(kept, 0, 2 * 5000, 0); kept += 2500000000;"
    found = evaluated(evaluator, HIP.replace("    copy_kernel<<<dim3(", large % beyond).replace(GUARDED, READS))
    assert found.verdict is Verdict.INCORRECT, found.reason
    assert "uninitialised read of hipMalloc(6000000000)" in found.reason, found.reason
    found = evaluated(evaluator, source.replace("6000000000L", "100000000000L"))
    assert found.verdict is not Verdict.OK, found
    assert "its 95367 MiB do not fit into a worker's memory of" in found.reason, found.reason


@needs_hip
def test_memory_of_the_host_that_is_registered_keeps_its_content(evaluator: PredictedEvaluator) -> None:
    registered = """    static unsigned short host[5000];
    for (int n = 0; n < 5000; ++n) host[n] = 7;
    (void)hipHostRegister(host, sizeof host, 0);
    copy_kernel<<<1, LANES>>>(host, (unsigned short*)out.data_ptr(), size < 256 ? size : 256);
    (void)hipHostUnregister(host);
    if (host[4999] != 7) return;
    copy_kernel<<<dim3("""
    found = evaluated(evaluator, HIP.replace("    copy_kernel<<<dim3(", registered))
    assert found.verdict is Verdict.OK, found.reason


@needs_hip
def test_memory_of_the_device_that_nobody_wrote_is_told(evaluator: PredictedEvaluator) -> None:
    found = evaluated(evaluator, HIP.replace("    copy_kernel<<<dim3(", STATIC % "").replace(GUARDED, READS))
    assert found.verdict is Verdict.INCORRECT and "uninitialised read of hipMalloc(" in found.reason, found.reason
