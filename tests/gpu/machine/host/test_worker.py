"""HIP submissions in the sandboxed worker: built outside, loaded there, executed by the machine."""

import re
from collections.abc import Iterator

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.hardware import gpus
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import CompileReport
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers import prepared
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

TOOLS = hip.find()
pytestmark = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
SEED = (ROOT / "problems/identity/seeds/hip_naive.py").read_text()


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    problem, harness = problems.find("identity", "cpu"), Harness()
    settings = prepared.simulated(problem, gpus.MI300X, threads=1)
    pool = WorkerPool(harness, "cpu", machine=settings)
    yield Driver(problem, harness, pool)
    pool.close()


def executed(driver: Driver, source: str) -> list[CompileReport]:
    """Import a file in a worker, call it on the smallest case, and compare its output with the reference's."""
    case, reports = driver.problem.profile("full").tests[0], list[CompileReport]()
    with driver.pool.worker() as worker:
        driver.imported(worker, source, reports)
        inputs = driver.inputs.draw(case)
        _, outputs = driver.row(worker, {0: inputs}, 60)
        driver.verify([inputs], outputs)
    return reports


def test_a_seed_is_built_loaded_and_executed(driver: Driver) -> None:
    (report,) = executed(driver, SEED)
    assert report.ok and "clang" in report.compiler


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        (
            "undefined.extent = None",
            "infrastructure",
        ),  # stands for a mistake in the machine's own code
        ("None.missing", "crashed"),
        ("[][1]", "crashed"),
        ("x[x.numel() + 5]", "crashed"),
        ("x.sum(dim=7)", "crashed"),
        ("torch.matmul(x)", "crashed"),
        ("torch.empty('x')", "crashed"),
    ],
)
def test_a_mistake_of_the_evaluators_code_is_no_verdict_on_the_kernel(driver: Driver, line: str, verdict: str) -> None:
    call = "    x = x.clone()\n    module.copy(x, out)\n"
    source = SEED.replace("    module.copy(x, out)\n", f"    {line}\n{call}")
    with pytest.raises(KernelFailure) as failure:
        executed(driver, f"from kernel_scientist.gpu.machine import undefined\n{source}")
    assert failure.value.verdict == verdict, failure.value
    assert ("the evaluator's own code" in str(failure.value)) == (verdict == "infrastructure")


def test_a_wrong_kernel_is_wrong(driver: Driver) -> None:
    with pytest.raises(KernelFailure) as failure:
        executed(driver, SEED.replace("out[i] = x[i]", "out[i] = x[i] ^ (i == 77)"))
    assert failure.value.verdict == "incorrect"


def test_a_refusal_reaches_the_evaluator_with_its_line(driver: Driver) -> None:
    captured = SEED.replace(
        "    long size = x.numel();", "    long size = x.numel();\n    (void)hipStreamBeginCapture(nullptr, {});"
    )
    with pytest.raises(KernelFailure) as failure:
        executed(driver, captured)
    line = next(n for n, text in enumerate(captured.splitlines(), 1) if "hipStreamBeginCapture" in text)
    assert f"hipStreamBeginCapture (kernel.py, line {line}): graphs are not simulated" in str(failure.value)
    assert failure.value.verdict == "compiled", "the stand-in's limit is no kernel's fault"


def test_a_launch_that_a_device_would_refuse_is_named_with_its_line(driver: Driver) -> None:
    for wrong, words in (("dim3(2048)", "2048 threads in a block"), ("dim3(LANES), 70000", "70000 bytes of LDS")):
        source = SEED.replace("__launch_bounds__(LANES) ", "").replace("dim3(LANES)>>>", f"{wrong}>>>")
        line = next(n for n, text in enumerate(source.splitlines(), 1) if "<<<" in text)
        with pytest.raises(KernelFailure) as failure:
            executed(driver, source)
        assert failure.value.verdict == "crashed" and words in str(failure.value)
        assert f"hipLaunchKernel (kernel.py, line {line}): " in str(failure.value)


def test_an_instruction_that_the_machine_lacks_is_no_fault_of_the_kernel(driver: Driver) -> None:
    odd = SEED.replace("out[i] = x[i]", 'out[i] = x[i]; asm volatile("v_cubeid_f32 v9, v9, v9, v9")')
    with pytest.raises(KernelFailure) as failure:
        executed(driver, odd)
    assert failure.value.verdict == "compiled"
    assert "v_cubeid_f32 v9, v9, v9, v9 (assembly line " in str(failure.value)
    assert "it is for graphics, video or typed buffers" in str(failure.value)


def test_a_function_of_a_library_that_is_not_there_is_no_fault_of_the_kernel(driver: Driver) -> None:
    called = SEED.replace("    long size = x.numel();", "    long size = x.numel();\n    rocblas_initialize();")
    called = called.replace("#include <hip", 'extern "C" void rocblas_initialize();\n#include <hip', 1)
    with pytest.raises(KernelFailure) as failure:
        executed(driver, called)
    assert failure.value.verdict == "compiled" and "rocblas_initialize" in str(failure.value)


def test_operators_are_called_and_their_refusals_raised(driver: Driver) -> None:
    registered = SEED.replace('    functions=["copy"],\n', "    is_python_module=False,\n").replace(
        "module.copy", "torch.ops.own.copy"
    )
    library = """
TORCH_LIBRARY(own, m) { m.def("copy(Tensor x, Tensor! out) -> ()"); }
TORCH_LIBRARY_IMPL(own, CUDA, m) { m.impl("copy", &copy); }
\"\"\"

module = load"""
    executed(driver, registered.replace('"""\n\nmodule = load', library.lstrip(), 1))
    captured = registered.replace("    long size", "    (void)hipStreamBeginCapture(nullptr, {});\n    long size")
    with pytest.raises(KernelFailure) as failure:
        executed(driver, captured.replace('"""\n\nmodule = load', library.lstrip(), 1))
    assert "graphs are not simulated" in str(failure.value)


def test_an_error_in_host_code_is_a_compile_error(driver: Driver) -> None:
    with pytest.raises(KernelFailure) as failure:
        executed(driver, SEED.replace("x.numel()", "x.size_of_it()"))
    assert failure.value.verdict == "compile_error" and "size_of_it" in str(failure.value)


def test_a_library_that_is_not_here_is_said_to_be_missing(driver: Driver) -> None:
    included = SEED.replace("#include <hip", "#include <rocprim/none.hpp>\n#include <hip")
    with pytest.raises(SetupError, match=r"<rocprim/none\.hpp> is not installed here \(\S+\[1\], line 2\); "):
        executed(driver, included.replace("    long size = x.numel();", "    rocprim::go(); long size = x.numel();"))


def test_a_library_that_host_code_alone_needs_is_said_to_be_missing(driver: Driver) -> None:
    host = '"""#include <rocblas/none.h>\nvoid copy(torch::Tensor x, torch::Tensor out);\nnone_handle one;\n"""'
    source = SEED.replace('"void copy(torch::Tensor x, torch::Tensor out);"', host)
    assert source != SEED
    with pytest.raises(KernelFailure) as failure:
        executed(driver, source)
    said = str(failure.value)
    assert failure.value.verdict == "infrastructure"
    assert re.search(r"<rocblas/none\.h> is not installed here \(\S+\[0\], line 1\); ", said), said
    assert re.search(r"the first error without it: unknown type name 'none_handle' \(\S+\[0\], line 3\)$", said), said
    assert "\n" not in said


def test_an_error_beside_a_header_that_is_not_here_is_told(driver: Driver) -> None:
    odd = SEED.replace("#include <hip", "#include <hipsparse/none.h>\n#include <hip").replace("x.numel()", "x.numel(")
    with pytest.raises(SetupError, match=r"<hipsparse/none\.h> is not installed .* error without it: expected "):
        executed(driver, odd)


def test_a_header_that_is_not_here_and_not_used_is_not_missed(driver: Driver) -> None:
    (report,) = executed(driver, SEED.replace("#include <hip", "#include <rocprim/none.hpp>\n#include <hip"))
    assert report.ok
