"""The target process of a profiler: it calls the kernel, confined, with what it needs and no more."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.profile import profiler, target_process, workspace
from kernel_scientist.profile.profiler import Profiler
from kernel_scientist.profile.workspace import Workspace
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.sandbox import bubblewrap, landlock
from tests.conftest import ROOT
from tests.profile.profiler_tables import TORCH

EvaluatorFor = Callable[[str], Evaluator]
NAMESPACES = bubblewrap.bubblewrap_works()


@pytest.fixture
def ready(evaluator_for: EvaluatorFor, tmp_path: Path) -> Iterator[Callable[[str, str], Workspace]]:
    evaluator = evaluator_for("identity")

    def make(source: str, language: str) -> Workspace:
        kernel = Kernel.model_validate({"name": "k00001", "language": language, "source": source})
        return workspace.prepare(evaluator, kernel, evaluator.profile.benchmarks, tmp_path, Profiler("ncu", "", ()))

    yield make


def play(it: Workspace, namespaces: bool, timeout_s: float = 60) -> tuple[int | None, str]:
    line = profiler.command(it.program, it.folder, "cpu", namespaces, ())
    return profiler.run(line, it.folder, "cpu", timeout_s, threading.Event())


@pytest.mark.parametrize("namespaces", {NAMESPACES, False})
def test_the_target_process_calls_a_kernel_twice_on_each_case(
    namespaces: bool, ready: Callable[[str, str], Workspace]
) -> None:
    it = ready(TORCH, "triton")
    assert play(it, namespaces) == (0, "")
    assert (it.folder / "calls").read_text().split() == ["131072", "524288", "2097152"] * 2
    assert it.cases == ("size131072", "size524288", "size2097152")


def test_the_target_process_gets_what_was_built_for_the_kernel(ready: Callable[[str, str], Workspace]) -> None:
    it = ready((ROOT / "problems/identity/seeds/cpp_blocked.py").read_text(), "cpp")
    assert len(list((it.folder / target_process.BUILDS).iterdir())) == 1
    assert play(it, NAMESPACES) == (0, "")


EXTENSION = """
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <Python.h>
#include <cstring>

static PyObject *copy(PyObject *, PyObject *given) {
    unsigned long long from, to, bytes;
    if (!PyArg_ParseTuple(given, "KKK", &from, &to, &bytes)) return nullptr;
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"copy", copy, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "copies", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_copies() { return PyModule_Create(&module); }
'''
native = load_inline("copies", SOURCE, no_implicit_headers=True, with_pytorch_error_handling=False)

def custom_kernel(data):
    x, out = data
    native.copy(x.data_ptr(), out.data_ptr(), x.nbytes)
    return out
"""


def test_the_target_process_gets_the_extension_of_the_kernel(
    ready: Callable[[str, str], Workspace],
) -> None:
    it = ready(EXTENSION, "hip")
    assert len(list((it.folder / target_process.BUILDS).iterdir())) == 1
    assert play(it, NAMESPACES) == (0, "")


def test_what_is_handed_over_holds_no_seed_and_no_expected_output(ready: Callable[[str, str], Workspace]) -> None:
    it = ready(TORCH, "triton")
    request = json.loads((it.folder / target_process.REQUEST).read_text())
    assert set(request) == {"profiler", "device", "cases", "limits", "files", "cores"}
    assert all(set(case) == {"data", "sizes"} for case in request["cases"])
    x, out = (it.folder / "0.bin").read_bytes()[:262144], (it.folder / "0.bin").read_bytes()[262144:]
    assert len(out) == 262144 and len(set(out)) == 1 and x != out  # garbage where the output goes


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (f"open({str(ROOT / 'params.yaml')!r}).read()", "params.yaml"),
        ("import socket; socket.socket()", "ermission"),
        (f"open({str(ROOT / 'written')!r}, 'w')", "written"),
        ("import os; os.fork()", ""),
        ("raise RuntimeError('what it says')", "what it says"),
    ],
)
def test_the_target_process_is_confined(code: str, words: str, ready: Callable[[str, str], Workspace]) -> None:
    if not NAMESPACES and not landlock.version():
        pytest.skip("this system hides no files from workers")
    it = ready(f"{code}\n{TORCH}", "triton")
    for namespaces in {NAMESPACES, not landlock.version()}:
        status, text = play(it, namespaces)
        assert status not in (0, None) and words in text


def test_no_key_of_ours_is_in_its_environment(
    ready: Callable[[str, str], Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXAMPLE_API_KEY", "very secret")
    it = ready(f"import os\nassert 'EXAMPLE_API_KEY' not in os.environ, 'seen'\n{TORCH}", "triton")
    assert play(it, NAMESPACES) == (0, "")


def test_what_takes_too_long_or_is_stopped_is_ended(ready: Callable[[str, str], Workspace]) -> None:
    it = ready(f"import time\ntime.sleep(100)\n{TORCH}", "triton")
    for namespaces in {NAMESPACES, False}:
        assert play(it, namespaces, timeout_s=3)[0] is None
