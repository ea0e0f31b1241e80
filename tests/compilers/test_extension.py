"""What a submission builds by torch's `load_inline`: the verifier's builder compiles it, the worker imports it."""

from collections.abc import Callable
from typing import Any

import pytest

from kernel_scientist import problems
from kernel_scientist.compilers import build, extension
from kernel_scientist.compilers.request import CompileError, ExtensionRequest
from kernel_scientist.compilers.source import language_of
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.hardware import addresses
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.validation import build_request
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

EvaluatorFor = Callable[[str], Evaluator]
HEAD = "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
COPY = """
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <cstring>

void copy(at::Tensor x, at::Tensor out) { std::memcpy(out.data_ptr(), x.data_ptr(), x.nbytes()); }
"""
CUDA = """
__global__ void copy_kernel(const unsigned short* x, unsigned short* out, long size) {
    long i = (long)blockIdx.x * 256 + threadIdx.x;
    if (i < size) out[i] = x[i];
}

void copy(torch::Tensor x, torch::Tensor out) {
    long size = x.numel();
    copy_kernel<<<dim3((size + 255) / 256), dim3(256)>>>(
        (const unsigned short*)x.data_ptr(), (unsigned short*)out.data_ptr(), size);
}
"""


def submission(source: str, arguments: str = "", call: str = "module.copy(x, out)") -> str:
    return (
        f"{HEAD}SOURCE = r'''{source}'''\n"
        f"module = load_inline('own', cpp_sources=[SOURCE], no_implicit_headers=True, {arguments})\n\n\n"
        f"def custom_kernel(data):\n    x, out = data\n    {call}\n    return out\n"
    )


RIGHT = submission(COPY, "functions=['copy'], extra_cflags=['-O3'], verbose=True")
CLASS = (
    COPY.replace("void copy", "struct Copier { static void of(at::Tensor x, at::Tensor out); void run").replace(
        "x.nbytes()); }",
        "x.nbytes()); } };\nvoid Copier::of(at::Tensor x, at::Tensor out) { Copier().run(x, out); }",
    )
    + """
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    pybind11::class_<Copier> copier(m, "Copier");
    copier.def(pybind11::init<>()).def("run", &Copier::run).def_static("of", &Copier::of);
    copier.attr("Itself") = copier;
    copier.attr("within") = m.def_submodule("within").def("copy", &Copier::of);
    m.attr("date") = pybind11::module_::import("datetime").attr("date");
}
"""
)
OPERATOR = (
    "#include <torch/library.h>\n"
    + COPY
    + """
void copy_out(at::Tensor x, at::Tensor out) { copy(x, out); }
TORCH_LIBRARY(mine, m) {
    m.def("copy(Tensor x, Tensor(a!) out) -> ()", &copy);
    m.def("named.out(Tensor x, *, Tensor(a!) out) -> ()", &copy_out);
}
"""
)
OWN = {
    "a class": submission(CLASS, call="module.Copier().run(x, out)"),
    "a static method": submission(CLASS, call="module.Copier.of(x, out)"),
    "an operator": submission(OPERATOR, "functions=[]", call="torch.ops.mine.copy(x, out)"),
    "an operator of no module": submission(OPERATOR, "is_python_module=False", call="torch.ops.mine.copy(x, out)"),
    "an operator's overload": submission(OPERATOR, "functions=[]", call="torch.ops.mine.copy.default(x, out)"),
    "a named overload": submission(OPERATOR, "functions=[]", call="torch.ops.mine.named(x, out=out)"),
    "a module within": submission(CLASS, call="module.within.copy(x, out)"),
}
"""How else than by functions an extension's code is called."""
FOREIGN = {
    "another library's overload": "out.copy_(x) if x.numel() < 0 else torch.ops.aten.copy_.default(out, x)",
    "another library's operator": "torch.ops.aten.copy_(out, x)",
}
REFUSED = {
    "wrong C++": (submission(COPY.replace("x.nbytes()", "x.bites()"), "functions=['copy']"), "has no member"),
    "forbidden flag": (submission("", "extra_cflags=['-O3', '-fplugin=x.so']"), "'-fplugin=x.so' is not allowed"),
    "flag handed on": (submission("", "extra_cuda_cflags=['-Xcompiler=-O3,-wrapper,sh']"), "is not allowed"),
    "no closing quote": (submission("", "extra_ldflags=['-lm \"']"), "a flag cannot be read"),
    "GPU code": (submission("", "cuda_sources=['__global__ void f() {}']"), "this target has no GPU"),
    "GPU headers": (submission("", "with_cuda=True"), "this target has no GPU"),
    "name of no module": (submission("").replace("'own'", "'own;'"), "'own;' is not a C identifier"),
    "SYCL": (submission("", "sycl_sources=['x']"), "SYCL is for Intel's GPUs"),
    "files": (submission("").replace("load_inline", "load"), "a kernel is one file"),
    "sources of no kind": (submission("").replace("[SOURCE]", "7"), "cpp_sources must be a string or a list"),
    "not the worker": (
        f"{HEAD}torch.utils.cpp_extension.is_ninja_available()\ndef custom_kernel(data):\n    return data[1]\n",
        "forbidden system call",
    ),
}  # fmt: skip


@pytest.mark.slow
def test_a_sound_extension_is_built_once_judged_and_timed(evaluator_for: EvaluatorFor) -> None:
    evaluator = evaluator_for("identity")
    evaluation = evaluator.compile(kernel(RIGHT))
    assert evaluation.verdict is Verdict.OK, evaluation
    assert evaluation.compile and not evaluation.compile.cached and evaluation.compile.code_bytes
    again = evaluator.compile(kernel(RIGHT))
    assert again.compile and again.compile.cached and again.verdict is Verdict.OK
    checked = evaluator.check(kernel(RIGHT), evaluation)
    assert checked.verdict is Verdict.OK, checked
    assert not set(checked.labels) & {"measured:library-only", "measured:decoy", "measured:library-work"}
    timed = evaluator.time(kernel(RIGHT), checked, [evaluator.reference()], cases=evaluator.profile.benchmarks[:1])
    assert timed.verdict is Verdict.OK and timed.timings, timed
    decoy = RIGHT.replace("return out", "return out.copy_(x)")
    assert "measured:decoy" in evaluator.check(kernel(decoy), evaluator.compile(kernel(decoy))).labels
    lazy = RIGHT.replace("module = load_inline", "make = lambda: load_inline").replace("module.", "make().")
    late = evaluator.check(kernel(lazy), evaluator.compile(kernel(lazy)))
    assert late.verdict is Verdict.COMPILE_ERROR and "while the kernel's file is imported" in late.reason


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_an_extensions_own_code_is_seen_however_it_is_called(name: str, evaluator_for: EvaluatorFor) -> None:
    evaluator, decoy = evaluator_for("identity"), OWN[name].replace("return out", "return out.copy_(x)")
    found = {
        source: evaluator.check(kernel(source), evaluator.compile(kernel(source))) for source in (OWN[name], decoy)
    }
    assert all(one.verdict is Verdict.OK for one in found.values()), found
    measured = {"measured:library-only", "measured:decoy"}
    assert [set(one.labels) & measured for one in found.values()] == [set(), {"measured:decoy"}], found


@pytest.mark.parametrize("name", FOREIGN)
def test_an_operator_of_its_own_makes_no_other_its_own(name: str, evaluator_for: EvaluatorFor) -> None:
    evaluator, source = evaluator_for("identity"), submission(OPERATOR, "functions=[]", call=FOREIGN[name])
    assert "measured:library-only" in evaluator.check(kernel(source), evaluator.compile(kernel(source))).labels


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_built_is_a_verdict_that_says_why(name: str, evaluator_for: EvaluatorFor) -> None:
    source, words = REFUSED[name]
    evaluation = evaluator_for("identity").compile(kernel(source))
    expected = Verdict.REJECTED if name == "not the worker" else Verdict.COMPILE_ERROR
    assert evaluation.verdict is expected and words in evaluation.reason, evaluation
    assert str(ROOT) not in evaluation.reason


def test_flags_reach_the_compiler_as_they_were_meant_and_run_nothing() -> None:
    """What a shell or ninja would act on is a macro's text; the object is not imported where it is built."""
    source = "const char* text = TEXT; __attribute__((constructor)) void imported() { __builtin_trap(); }"
    flags = ["-DTEXT='\"$(touch ran) $in ; `x` & | > y\"'", "-O1  -g0"]
    wanted = request(cpp_sources=[source], cflags=flags)
    built = build.build(wanted, "cpu", 60)
    assert built.path is not None, built.report.log
    assert b"$(touch ran) $in ; `x` & | > y" in built.path.read_bytes()
    assert build.build(wanted, "cpu", 60).report.cached


def test_a_builder_that_takes_too_long_is_stopped() -> None:
    built = build.build(request(cpp_sources=["#include <pybind11/pybind11.h>"], cflags=["-DSLOW"]), "cpu", 0.5)
    assert built.path is None and "took longer than 0.5 s" in built.report.log


def test_a_request_is_read_with_suspicion() -> None:
    good = request(cuda_sources=["x"], functions={"f": "f"}, cflags=["-O3"], with_cuda=True)
    assert build_request({"request": good._asdict()}) == good
    for change in ({"name": "../x"}, {"cpp_sources": "x"}, {"ldflags": None}, {"include_paths": {}}, {"name": 7}):
        with pytest.raises(KernelFailure, match="no build request"):
            build_request({"request": {**good._asdict(), **change}})
    for change in ({"cuda_sources": ["\0"]}, {"functions": {"f": "\ud800"}}, {"cflags": ["x" * (1 << 17)]}):
        with pytest.raises(KernelFailure) as caught:
            build_request({"request": {**good._asdict(), **change}})
        assert caught.value.verdict is Verdict.COMPILE_ERROR


def test_outside_the_harness_torch_does_what_it_always_did() -> None:
    from torch.utils import cpp_extension

    before = cpp_extension.load_inline
    with pytest.raises(CompileError, match="while the kernel's file is imported"):
        extension.load_inline("own", "")
    assert cpp_extension.load_inline is before


@pytest.mark.parametrize(
    ("call", "language"),
    [
        ("load_inline('a', cpp_sources=[X])", "cpp"),
        ("load_inline('a', cpp_sources=[X], cuda_sources=None)", "cpp"),
        ("load_inline('a', [X], cuda_sources = [ ], with_cuda=False)", "cpp"),
        ("load_inline('a', cpp_sources=[X], cuda_sources='', functions=None)", "cpp"),
        ("load_inline('a', cpp_sources=[X], cuda_sources=[Y])", "cuda"),
        ("load_inline('a', cpp_sources=[X], cuda_sources=['#include <hip/hip_runtime.h>'])", "hip"),
        ("os.environ['PYTORCH_ROCM_ARCH'] = 'gfx942'; load_inline('a', [], cuda_sources=zlib.decompress(Y))", "hip"),
    ],
)
def test_the_language_is_that_of_the_sources_given(call: str, language: str) -> None:
    assert language_of(call) == language


@pytest.mark.parametrize("language", ["hip", "cuda"])
def test_gpu_code_is_refused_without_its_gpu(language: str) -> None:
    needed = {"hip": "target=rocm", "cuda": "target=cuda"}[language]
    with pytest.raises(SetupError, match=f"only inspected.*{needed}"):
        addresses.resolve("cpu", language)


@pytest.mark.gpu
def test_an_extension_for_a_gpu_is_built_judged_and_timed() -> None:
    arguments = "cuda_sources=[DEVICE], functions=['copy'], extra_cuda_cflags=['-O3']"
    source = submission("void copy(torch::Tensor x, torch::Tensor out);", arguments)
    source = source.replace("no_implicit_headers=True, ", "").replace("SOURCE =", f"DEVICE = r'''{CUDA}'''\nSOURCE =")
    problem = problems.load(ROOT / "problems/identity", "cuda")
    with WorkerPool(
        Harness(call_timeout_s=60, build_timeout_s=300, noise_runs=0, stages=1, blocks=2, pairs=0), "cuda"
    ) as shop:
        evaluator = Evaluator(problem, "cpu", shop.harness, shop)
        evaluation = evaluator.compile(kernel(source, "cuda"))
        assert evaluation.verdict is Verdict.OK, evaluation
        checked = evaluator.check(kernel(source, "cuda"), evaluation)
        assert not set(checked.labels) & {"measured:library-only", "measured:decoy"}
        timed = evaluator.time(kernel(source, "cuda"), checked, [evaluator.reference()])
        assert timed.verdict is Verdict.OK and timed.timings, timed
        broken = evaluator.compile(kernel(source.replace("x[i]", "y[i]"), "cuda"))
        assert broken.verdict is Verdict.COMPILE_ERROR and '"y" is undefined' in broken.evidence[0] + broken.reason


def kernel(source: str, language: Any = "cpp") -> Kernel:
    return Kernel(name="k", language=language, source=source)


def request(**changes: Any) -> ExtensionRequest:
    texts: dict[str, Any] = {name: [] for name in ("cpp_sources", "cuda_sources", "cflags", "cuda_cflags")}
    texts |= {"ldflags": [], "include_paths": []}
    switches: dict[str, Any] = {"with_cuda": False, "error_handling": True, "headers": False}
    return ExtensionRequest(**{"name": "own", "functions": None, **texts, **switches, **changes})
