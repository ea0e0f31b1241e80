"""The evaluator's path for GPUs from end to end, on a stand-in for the vendor's library (`standin`), and cheats on it.

No figure here says anything about a GPU. The tests show that encryption, sweeps, keys and seals do what they should.
"""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluate.correctness.inputs import InputGenerator
from kernel_scientist.evaluate.evaluator import Evaluator
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.pool import native_library
from tests.conftest import ROOT, dedent
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


@pytest.mark.parametrize("told", ["0", "sweep(self, key + 1)", "sweep(self, 0)"])
def test_a_sweep_that_was_not_made_is_noticed(evaluator: Evaluator, told: str) -> None:
    source = (
        COPY
        + f"""
    import sys
    GpuInbox = sys.modules["kernel_scientist.workers.untrusted.buffers"].GpuInbox
    sweep = GpuInbox.sweep
    GpuInbox.sweep = lambda self, key: {told}
    """
    )
    found = timed(evaluator, source)
    assert (found.verdict, found.reason) == (Verdict.REJECTED, "it left out the sweep of the caches before its call")


@pytest.mark.parametrize("where", ["x[-1] += 1", "torch.as_strided(out, (1,), (1,), out.storage_offset() + n)[0] += 1"])
def test_who_writes_to_inputs_or_beside_buffers_is_noticed(evaluator: Evaluator, where: str) -> None:
    source = f"""
    import torch

    def custom_kernel(data):
        x, out = data
        n = x.numel()
        out.copy_(x)
        {where}
        return out
    """
    found = checked(evaluator, source)
    assert found.verdict is Verdict.INCORRECT and "outside its buffers" in found.reason, (found.reason, found.evidence)


def test_inputs_that_cannot_be_made_readable_are_told(evaluator: Evaluator) -> None:
    source = (
        COPY
        + """
    import sys

    def broken(self, slots, keys):
        raise RuntimeError("the GPU's memory is full")

    sys.modules["kernel_scientist.workers.untrusted.buffers"].GpuInbox.unmask = broken
    """
    )
    found = checked(evaluator, source)
    assert found.verdict is Verdict.CRASHED and "memory is full" in found.reason, (found.reason, found.evidence)


def test_a_worker_may_start_programs_until_it_has_compiled(evaluator: Evaluator) -> None:
    source = dedent(COPY).replace("    x, out", "    subprocess.run(['true'])\n    x, out")
    with evaluator.pool.worker() as worker:
        evaluator.driver.load(worker, f"import subprocess\n{source}", [CASE])
        with pytest.raises(KernelFailure, match="forbidden system call"):
            evaluator.driver.row(worker, {0: evaluator.inputs.draw(CASE)})


def test_masks_in_a_worker_and_here_are_the_same() -> None:
    """And no trace of what is hidden is left; the sweep's sum depends on key and words (`scripts/masks.py`)."""
    script = [sys.executable, "-m", "tests.gpu.interpreter.scripts.masks", str(native_library())]
    done = subprocess.run(script, cwd=ROOT, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("target", ["hip:gfx942:64", "cuda:90:32"])
def test_masks_compile_for_gpus(target: str) -> None:
    script = [sys.executable, "-m", "tests.gpu.interpreter.scripts.masks_compiled", target]
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(script, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_each_delivery_has_keys_of_its_own() -> None:
    inputs = InputGenerator(problems.load(ROOT / "problems" / "identity"))
    first = inputs.draw(CASE)
    drawn = [first, inputs.neighbour(first), inputs.draw(CASE)]
    words = [word for one in drawn for word in (one.sweep_key, *(word for pair in one.keys for word in pair))]
    assert len(words) == len(set(words)) == 9  # of two tensors one is written to: that one is not masked
