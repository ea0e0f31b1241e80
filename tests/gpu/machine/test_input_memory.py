"""Host code does not compute with the memory of a simulated GPU, and what it brings to the host is seen."""

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
from kernel_scientist.workers import prepared
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

TOOLS = hip.find()
needs_hip = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
SEED = """import ctypes
import threading
import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    factor = tl.load(table_ptr + at % 4, mask=at < n)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)


TABLE = {table}


def custom_kernel(data):
    x, out = data
    n, table = x.numel(), TABLE
    copy[(triton.cdiv(n, 256),)](x, table, out, n, BLOCK=256)
    {more}
    return out
"""
ONES = "torch.ones(4, dtype=torch.float16, device='cuda')"
HOST_ONES = "torch.ones(4, dtype=torch.float16)"
HIP = (ROOT / "problems/identity/seeds/hip_naive.py").read_text()
LAUNCH = "    copy_kernel<<<"
LINE = next(n for n, line in enumerate(HIP.splitlines(), 1) if line.startswith(LAUNCH))


@pytest.fixture(scope="module")
def evaluator() -> Iterator[PredictedEvaluator]:
    problem = problems.find("identity")
    small = problem.profile("full")
    problem = replace(problem, profiles={**problem.profiles, "full": replace(small, benchmarks=small.benchmarks[-1:])})
    harness = Harness(call_timeout_s=60, import_timeout_s=60, noise_runs=0, executed_s=1)
    with WorkerPool(harness, "cpu", machine=prepared.simulated(problem, gpus.MI300X, threads=1)) as pool:
        yield PredictedEvaluator(problem, "auto", harness, pool, gpus.MI300X)


def evaluated(evaluator: PredictedEvaluator, source: str) -> Evaluation:
    kernel = Kernel(name="k", language="hip" if "__global__" in source else "triton", source=source)
    return evaluator.check(kernel, evaluator.compile(kernel))


def triton(table: str = ONES, more: str = "pass") -> str:
    return SEED.replace("{table}", table).replace("{more}", more)


@pytest.mark.parametrize(
    ("table", "more"),
    [
        (ONES, "pass"),
        (f"{HOST_ONES}.cuda()", "pass"),
        (f"{HOST_ONES}.to('cuda')", "pass"),
        (f"{HOST_ONES}.to(0)", "pass"),
        (f"{HOST_ONES}.double().to({ONES})", "pass"),
        (f"torch.empty(4, dtype=torch.float16, device='cuda').copy_({HOST_ONES})", "pass"),
        (f"torch.nn.Parameter({HOST_ONES}, requires_grad=False).to(device=torch.device('cuda', 0))", "pass"),
        ("torch.from_numpy(np.ones(4, np.float16)).pin_memory()", "pass"),
        (ONES, "assert TABLE.is_cuda and TABLE.device.type == 'cuda' and TABLE.get_device() == 0"),
        (ONES, "assert torch.ones(4).numpy().sum() == 4 and torch.from_numpy(np.ones(4)).numpy().sum() == 4"),
        (ONES, "h = x.cpu(); assert not h.is_cuda and h.is_cpu and h.device.type == 'cpu' and h.get_device() == -1"),
        (
            "torch.nn.Linear(4, 1, dtype=torch.float16).requires_grad_(False).to('cuda').weight.fill_(1)",
            "assert TABLE.is_cuda",
        ),
        (
            ONES,
            "torch.inference_mode()(lambda: x[x.numel() % 2 :].view(2, -1).T.contiguous().float().flatten())()",
        ),
        (ONES, "print(x, x[:3]); threading.Thread(target=lambda: x[:3].shape).start()"),
        (ONES, "torch.set_default_device('cuda'); t = torch.ones(4); torch.set_default_device(None); assert t.is_cuda"),
    ],
)
def test_a_tensor_is_where_it_was_put(table: str, more: str, evaluator: PredictedEvaluator) -> None:
    found = evaluated(evaluator, triton(table, more))
    assert found.verdict is Verdict.OK, found


@pytest.mark.parametrize(
    ("table", "more", "words"),
    [
        (f"{HOST_ONES}.to('cpu')", "pass", "Pointer argument (table_ptr) cannot be accessed from Triton (cpu tensor?)"),
        (f"{ONES}.cpu()", "pass", "Pointer argument (table_ptr)"),
        (f"{ONES}.to('cpu')", "pass", "Pointer argument (table_ptr)"),
        (ONES, "out.copy_(torch.from_numpy(x.numpy().copy()))", "can't convert cuda:0 device type tensor to numpy"),
        (ONES, "np.asarray(x)", "can't convert cuda:0 device type tensor to numpy"),
        (ONES, "ctypes.string_at(x.data_ptr(), 2)", "its host code accessed input 0, which lies in the GPU's memory"),
    ],
)
def test_what_fails_on_a_gpu_fails_here(table: str, more: str, words: str, evaluator: PredictedEvaluator) -> None:
    found = evaluated(evaluator, triton(table, more))
    assert found.verdict in (Verdict.CRASHED, Verdict.REJECTED) and words in found.reason, found


@pytest.mark.parametrize(
    "more", ["x.cpu().numpy()", "x.tolist()", "x.numpy(force=True)", "torch.empty(2, device='cpu').copy_(x[:2])"]
)
def test_a_call_that_brings_values_to_the_host_is_right_and_has_no_prediction(
    more: str, evaluator: PredictedEvaluator
) -> None:
    found = evaluated(evaluator, triton(more=f"assert len({more}) > 0"))
    assert found.verdict is Verdict.OK and not found.predictions, found
    assert found.compile and any("brings values to the host" in one for one in found.compile.missed), found.compile


def test_an_operation_of_torch_that_writes_to_a_read_only_input_is_named(evaluator: PredictedEvaluator) -> None:
    found = evaluated(evaluator, triton(more="x.mul_(1)"))
    assert found.verdict is Verdict.INCORRECT and "it wrote to input 0, which is read-only" in found.reason, found


@needs_hip
@pytest.mark.parametrize("read", ["((volatile const short*)x.data_ptr())[3]", "x.data_ptr<at::Half>()[3]"])
def test_hip_host_code_that_reads_an_input_is_named(read: str, evaluator: PredictedEvaluator) -> None:
    found = evaluated(evaluator, HIP.replace(LAUNCH, f"    if ({read} == 77) size = 0;\n{LAUNCH}"))
    assert found.verdict is Verdict.CRASHED, found
    assert "its host code accessed input 0, which lies in the GPU's memory" in found.reason, found


@needs_hip
@pytest.mark.slow
def test_copies_by_the_runtime_take_time_and_those_to_the_host_have_no_prediction(
    evaluator: PredictedEvaluator,
) -> None:
    plain = evaluated(evaluator, HIP)
    copies = "(void)hipMemcpyAsync(out.data_ptr(), x.data_ptr(), 2 * size, hipMemcpyDeviceToDevice, 0);"
    copied = evaluated(evaluator, HIP.replace(LAUNCH, f"    {copies}\n{LAUNCH}"))
    cleared = evaluated(
        evaluator, HIP.replace(LAUNCH, f"    (void)hipMemsetAsync(out.data_ptr(), 0, 2 * size, 0);\n{LAUNCH}")
    )
    assert plain.predictions and copied.predictions and cleared.predictions, (plain, copied, cleared)
    times = [one.predictions[0].time_us for one in (plain, cleared, copied)]
    assert times[0] < min(times[1:]), times
    host = "short first; (void)hipMemcpy(&first, x.data_ptr(), 2, hipMemcpyDeviceToHost);"
    fetched = evaluated(evaluator, HIP.replace(LAUNCH, f"    {host}\n{LAUNCH}"))
    assert fetched.verdict is Verdict.OK and not fetched.predictions, fetched
