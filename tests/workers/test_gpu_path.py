"""The evaluator's path for GPUs from end to end, on a stand-in for the vendor's library (`standin`), and cheats on it.

No figure here says anything about a GPU. The tests show that memory, delays and seals do what they should.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure
from tests.conftest import ROOT, dedent
from tests.evaluation import test_layouts as layouts
from tests.workers import standin

pytestmark = pytest.mark.alone
CASE = Case(sizes={"size": 4096}, seed=1)
COPY = """
    def custom_kernel(data):
        x, out = data
        out.copy_(x)
        return out
    """


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    limits = {"memory_mib": 2048, "call_timeout_s": 5, "tampering": "allow"}
    harness = Harness.model_validate({"gpu_warmup_s": 0, "stages": 1, "pairs": 0, "noise_runs": 0, **limits})
    with standin.Shop(harness) as shop:
        yield Evaluator(problems.load(ROOT / "problems" / "identity"), "cpu", harness, shop)


def checked(evaluator: Evaluator, source: str) -> Evaluation:
    kernel = Kernel(name="k", language="cpp", source=dedent(source))
    return evaluator.check(kernel, evaluator.compile(kernel), [CASE])


def timed(evaluator: Evaluator, source: str) -> Evaluation:
    """Time a kernel that was not checked first: what is tried is what the timing itself sees."""
    kernel = Kernel(name="k", language="cpp", source=dedent(source))
    return evaluator.time(kernel, evaluator.compile(kernel), [evaluator.reference()], cases=[CASE])


def test_an_honest_kernel_passes(evaluator: Evaluator) -> None:
    found = checked(evaluator, COPY)
    assert found.verdict is Verdict.OK, (found.reason, found.evidence)
    found = timed(evaluator, COPY)
    assert found.verdict is Verdict.OK, (found.reason, found.evidence)
    assert found.timings[0].time_us > 0 and found.speedups[0].against == "reference"


@pytest.mark.parametrize("where", ["x[-1] += 1", "ctypes.memset(out.data_ptr() + out.nbytes, 1, 1)"])
def test_who_writes_to_inputs_or_beside_buffers_is_noticed(evaluator: Evaluator, where: str) -> None:
    source = f"""
    import ctypes

    def custom_kernel(data):
        x, out = data
        out.copy_(x)
        {where}
        return out
    """
    found = checked(evaluator, source)
    assert found.verdict is Verdict.INCORRECT and "outside its buffers" in found.reason, (found.reason, found.evidence)


LATE = """
    import ctypes
    import sys
    import torch

    device = sys.modules["tests.workers.standin"].loaded.handle

    def custom_kernel(data):
        x, out = data
        out.copy_(x)
        value, address = int(x[-1:].view(torch.int16)), out.data_ptr() + out.nbytes - 2
        out[-1] = 0
        for place, byte in enumerate((value & 255, value >> 8 & 255)):
            us = 0 if place else MICROSECONDS
            device.work(STREAM, us, ctypes.c_void_p(address + place), byte, ctypes.c_size_t(1))
        return out
    """


@pytest.mark.parametrize(("stream", "verdict"), [(0, Verdict.OK), (1, Verdict.INCORRECT)])
def test_work_that_the_default_stream_does_not_wait_for_is_missing(
    evaluator: Evaluator, stream: int, verdict: Verdict
) -> None:
    """What comes next on that stream would not find it."""
    found = timed(evaluator, late(stream, 500))
    assert found.verdict is verdict, (found.reason, found.evidence)
    if verdict is Verdict.INCORRECT:
        assert "1 of 4096 elements differ" in found.reason


@pytest.mark.parametrize("us", [3, 137])
def test_a_known_time_of_the_device_is_read(evaluator: Evaluator, us: int) -> None:
    """Within 2 us and 1 %; the launch, which takes longer, is not in it."""
    read: list[float] = []
    for _ in range(5):  # on a busy machine the host may see more than is usual, which is added
        found = timed(evaluator, late(0, us))
        assert found.verdict is Verdict.OK, (found.reason, found.evidence)
        assert found.clocks[0].idle_to_idle_us is not None and found.clocks[0].idle_to_idle_us > us
        read.append(found.timings[0].time_us)
        if abs(read[-1] - us) <= 2 + 0.01 * us:
            return
    pytest.fail(f"{us} us are read as {read}")


SPINNING = r"""
    from kernel_scientist import load

    kernel = load('''
    #include <chrono>
    #include <cstdint>

    extern "C" void spin(int64_t us) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
        while (std::chrono::steady_clock::now() < end);
    }
    ''')

    def custom_kernel(data):
        x, out = data
        out.copy_(x)
        kernel.spin(400)
        return out
    """


def test_what_a_kernel_computes_on_the_host_takes_time_on_the_device(evaluator: Evaluator) -> None:
    """Although it is done while the delay keeps the device busy."""
    found = timed(evaluator, SPINNING)
    assert found.verdict is Verdict.OK, (found.reason, found.evidence)
    assert found.clocks[0].event_us is not None and found.clocks[0].event_us >= 400
    assert found.timings[0].time_us >= 400


def late(stream: int, us: int) -> str:
    """Return a kernel whose last byte is written after so many us on a stream."""
    return dedent(LATE.replace("STREAM", str(stream)).replace("MICROSECONDS", str(us)))


def test_a_worker_may_start_programs_until_it_has_compiled(evaluator: Evaluator) -> None:
    source = dedent(COPY).replace("    x, out", "    subprocess.run(['true'])\n    x, out")
    with evaluator.pool.worker() as worker:
        evaluator.driver.load(worker, f"import subprocess\n{source}", [CASE])
        with pytest.raises(KernelFailure, match="forbidden system call"):
            evaluator.driver.row(worker, {0: evaluator.inputs.draw(CASE)})


@pytest.mark.parametrize(
    ("kind", "more", "verdict"),
    [
        ("columns", "pass", Verdict.OK),
        ("shared", "pass", Verdict.OK),
        ("columns", "torch.as_strided(out, out.shape, out.stride(), 0).zero_()", Verdict.INCORRECT),
        ("shared", "y[3, 3] = -1", Verdict.INCORRECT),
    ],
)
def test_views_arrive_as_they_are(evaluator: Evaluator, tmp_path: Path, kind: str, more: str, verdict: Verdict) -> None:
    """And what lies between the elements of a buffer may not be written."""
    problem = layouts.loaded(tmp_path, layouts.REFERENCE_FILE, [{"kind": kind, "n": 20}])
    own = Evaluator(problem, "full", evaluator.harness, evaluator.pool)
    body = f"{layouts.RIGHT}\n    {more}"
    kernel = Kernel(name="k", language="cpp", source=dedent(layouts.HONEST % (layouts.KINDS[kind], body)))
    found = own.check(kernel, own.compile(kernel))
    assert found.verdict is verdict, (found.reason, found.evidence)
    assert verdict is Verdict.OK or "outside its buffers" in found.reason
