"""Who reaches for the code that calls it, or hides what it does, is named so that it owes; who only looks so is not."""

import pytest

from kernel_scientist.evaluate.timing.estimate import REACHING
from tests.test_screen import native, said, triton

REACHES = {
    "modules": "m = sys.modules['x']",
    "modules, by a method": "m = sys.modules.get('x')",
    "modules, by name": "m = getattr(sys, 'mod' + 'ules')",
    "modules, by a computed name": "m = getattr(sys, input())",
    "modules, of another module": "m = torch.sys.modules",
    "modules, of another module's import": "from torch.utils import sys as s\nm = s.modules",
    "modules, of what is renamed there": "import collections\nm = collections._sys.modules['x']",
    "modules, of what is in a list": "m = [torch][0].sys.modules",
    "sys compared": "sys.modules == Grabs()",
    "sys called self": "self = torch\nm = self.sys.modules",
    "sys handed on": "def f(m): return m.modules\nf(sys)",
    "sys looked through": "m = [v for k, v in vars(sys).items()]",
    "sys taken apart": "match torch:\n    case object(sys=m): pass",
    "its dictionary": "sys.__dict__.get('modules')",
    "a module's dictionary": "torch.__dict__.update(allclose=print)",
    "a module's variables": "vars(torch).update(allclose=print)",
    "attrgetter": "import operator\nm = operator.attrgetter('sys.modules')(torch)",
    "attrgetter of a computed name": "import operator\nm = operator.attrgetter(input())(torch)",
    "getattr handed on": "import functools\nm = functools.reduce(getattr, ['sys', 'modules'], torch)",
    "getattr by another name": "g = getattr\nm = g(torch, 's' + 'ys')",
    "getattribute": "m = object.__getattribute__(torch, 'x')",
    "what the laboratory is called": "w = 'kernel_scientist.' + 'harness.worker'",
    "import": "m = __import__('kernel_scientist.evaluate').Worker",
    "import of importlib": "import importlib\nm = importlib.__import__('kernel_scientist').harness",
    "import, some way off": "m = torch._ops.importlib.import_module('kernel_scientist.evaluate').Worker",
    "import of a computed name": "m = __import__(input())",
    "import hooks": "sys.meta_path.insert(0, print)",
    "a module's loader": "m = torch.__spec__.loader",
    "its own loader": "m = __loader__.load_module('x')",
    "importlib's insides": "import importlib\nm = importlib._bootstrap._gcd_import('x')",
    "reload": "import importlib\nimportlib.reload(torch)",
    "pkgutil": "import pkgutil\nm = pkgutil.resolve_name('torch')",
    "runpy": "import runpy\nrunpy.run_module('x')",
    "the laboratory imported": "from kernel_scientist.workers.native import NativeHarness as anything",
    "the laboratory handed on": "import kernel_scientist.compile.cpp\nm = (lambda p: p.harness)(kernel_scientist)",
    "the loader handed on": "import kernel_scientist.compile.cpp as c\nm = [c]",
    "an importer handed on": "import importlib\nm = map(importlib.import_module, ['sys'])",
    "pickle": "import pickle, io\nm = pickle.Unpickler(io.BytesIO(b'csys\\nmodules\\n.')).load()",
    "pydoc": "import pydoc\nm = pydoc.locate('x')",
    "timeit": "import timeit\ntimeit.timeit('1')",
    "a profiler": "import cProfile\ncProfile.run('1')",
    "logging's frame": "import logging\nm = logging.currentframe()",
    "a pattern": "from kernel_scientist import load\nmatch load:\n    case object(__globals__=m): pass",
    "an empty text first": "m = getattr(torch, '' + 'sys').modules",
    "classes": "m = object.__subclasses__()",
    "globals": "m = triton.jit.__globals__",
    "globals, far away": "m = torch" + ".functional.torch" * 15 + ".jit.script.__globals__",
    "closure": "m = triton.jit.__closure__",
    "builtins of a builtin": "m = len.__self__.__import__",
    "the loader's": "from kernel_scientist import load\nm = load.__wrapped__",
    "frames": "m = sys._getframe.__call__(1)",
    "frames of a generator": "def f():\n    yield\nm = f().gi_frame",
    "frames of a coroutine": "async def f(): pass\nm = f().cr_frame",
    "frames, some way off": "def f():\n    yield\nm = f().gi_frame.f_back.x.y",
    "frames of all threads": "m = sys._current_frames()",
    "frames, walked": "import traceback\nm = list(traceback.walk_stack(None))",
    "a traceback": "try: f()\nexcept Exception as e: m = e.__traceback__.tb_frame",
    "what a function closes over": "import inspect\nm = inspect.getclosurevars(triton.jit)",
    "all objects": "import gc\nf = gc.get_objects",
    "gc handed on": "import gc\nf = [gc]",
    "gc's callbacks": "import gc\ngc.callbacks.append(print)",
    "audit": "sys.addaudithook(print)",
    "threads' profile": "import threading\nthreading.setprofile_all_threads(print)",
    "python's functions": "import ctypes\nctypes.CDLL(None).PyRun_SimpleString(b'')",
    "python's functions, by key": "import ctypes\nctypes.PyDLL(None)['PyRun_SimpleString']",
    "python's functions, from a text": "S = 'int q() { return PyRun_SimpleString(0); }'",
    "an object by its address": "import ctypes\nctypes.py_object.from_address(1)",
    "memory": "m = open('/proc/self/mem', 'r+b')",
    "interpreter": "import code\ncode.InteractiveInterpreter()",
    "exec, by its method": "exec.__call__('1')",
    "exec of another module": "import enum\nenum.bltns.exec('1')",
    "a type of functions": "F = type(triton).__class__\nimport types\nF = torch._ops.types.FunctionType",
}
REACHES_NATIVELY = {
    "modules": 'PyDict_GetItemString(PyImport_GetModuleDict(), "x");',
    "sys": 'PySys_GetObject("modules");',
    "private": "_PyInterpreterState_Get();",
    "the runtime": "auto* r = &_PyRuntime;",
    "pending": "Py_AddPendingCall(f, 0);",
    "types": "auto* t = Py_TYPE(o)->tp_subclasses;",
    "by name": 'dlsym(RTLD_DEFAULT, "PyRun_SimpleString");',
    "an asm label": 'extern "C" int run(const char*) __asm__("PyRun_SimpleString");',
    "neighbouring literals": 'fopen("/pro" /* x */ "c/self/m"\n "aps", "r");',
    "the linker's map": "auto* m = _r_debug.r_map;",
    "a system call": "syscall(10, p, 4096, 7);",
    "pybind11": 'pybind11::module_::import("sys");',
    "pybind11, spaced": 'py:: exec ("1");',
    "renamed": 'namespace p = pybind11; p::eval("1");',
    "used": 'using namespace pybind11; exec("1");',
    "internals": "pybind11::detail::get_internals();",
    "globals": 'o.attr("__globals__");',
    "maps": 'fopen("/proc/self/maps", "r");',
}
REACHES_NOTHING = {
    "the interpreter's version": "print(sys.platform, sys.version_info, getattr(sys, 'maxsize'), file=sys.stderr)",
    "is it installed": "import importlib.util\nHAS = importlib.util.find_spec('triton') is not None",
    "is it imported": "HAS = 'triton' in sys.modules and hasattr(sys, 'gettrace')",
    "import in a loop": "import importlib\nfor n in ('triton', 'torch'): m = importlib.import_module(n)",
    "import of a backend": "import importlib\nm = importlib.import_module(f'triton.language.extra.{os.name}')",
    "a module that may be missing": "try: import inspect\nexcept ImportError: inspect = None\nif inspect: pass",
    "signature": "import inspect\nn = len(inspect.signature(triton).parameters)",
    "garbage": "import gc\ngc.collect()\ngc.disable()\ndel gc",
    "its own attributes": "class A:\n    def f(self): return vars(self), self.__dict__, self.__class__.__name__",
    "attributes like modules": "class A:\n    def f(self): self.os = 1; self.gc(); self.sys.solve()",
    "methods like modules": "tuner.inspect()\ntuner.gc()\ntuner.sys",
    "a time of its own": "class A:\n    def f(self): self.elapsed_time = self.monotonic = 0.0",
    "timing itself": "import timeit\nt = timeit.default_timer()",
    "ours, as a module": "import kernel_scientist.compile.cpp as cpp\nk = cpp.load('')",
    "sorting": "from operator import attrgetter\nlist(sorted([], key=attrgetter('num_warps')))",
    "attributes of a module's own": "class A(B):\n    def __getattr__(self, n): return super().__getattr__(n)",
    "an error's text": "try: f()\nexcept OSError as e: traceback.print_exception(e, e, e.__traceback__)",
    "kinds of functions": "import types\nb = isinstance(triton, types.LambdaType)",
    "how many arguments": "n = triton.jit.__code__.co_argcount",
    "types by name": "d = {k: v for k, v in torch.__dict__.items() if isinstance(v, torch.dtype)}",
    "the machine's limits": "open('/sys/fs/cgroup/cpu.max')\nopen('/proc/self/status')",
    "torch's settings": "torch._dynamo.config.x = 1\nos.environ['A'] = 'b'\nsys.stdout = None",
    "a compiled pattern": "import re\nr = re.compile('a')\ncompile('1', '', 'eval')",
    "greek": "\u03b5 = 1e-5  # \U0001f469\u200d\U0001f52c",
    "numpy's ctypes": "import numpy as np\na = np.zeros(3).ctypes.data_as(None)",
    "ctypes": "import ctypes\np = ctypes.c_void_p(0)\nctypes.memmove(p, p, 8)\nt = [ctypes.py_object]",
}
REACHES_NOTHING_NATIVELY = {
    "pybind11": 'm.def("copy", &copy); py::gil_scoped_release free; m.def("exec", &Plan::exec);',
    "an error": 'PyErr_SetString(PyExc_RuntimeError, "x");',
    "an extension by hand": "PyModuleDef d = {PyModuleDef_HEAD_INIT}; PyModule_AddIntMacro(m, A); PyType_Ready(t)",
    "arguments": "PyArg_ParseTuple(a, 0); PyObject_GetBuffer(o, &b, PyBUF_SIMPLE); PyNumber_AsSsize_t(o, 0);",
    "the lock": "PyThreadState* s = PyEval_SaveThread(); PyEval_RestoreThread(s); PyGILState_Ensure();",
    "attributes": 'py::setattr(m, "x", f);',
    "numpy": "PyArray_DATA(a);",
    "methods": "Unroll<8>::exec(x); ::globals::N; cfg::getattr(0); model.eval(); exec(1);",
    "literals": "using namespace pybind11::literals; exec(1);",
}


@pytest.mark.parametrize("module", REACHES.values(), ids=REACHES)
def test_who_reaches_for_the_code_that_calls_it_is_named(module: str) -> None:
    assert worst(triton(module=module)) & REACHING


@pytest.mark.parametrize("cpp", REACHES_NATIVELY.values(), ids=REACHES_NATIVELY)
def test_who_reaches_for_it_from_native_code_is_named(cpp: str) -> None:
    assert worst(native(cpp)) & REACHING


@pytest.mark.parametrize("module", REACHES_NOTHING.values(), ids=REACHES_NOTHING)
def test_who_does_what_kernels_do_reaches_for_nothing(module: str) -> None:
    assert not worst(triton(module=module)) & REACHING


@pytest.mark.parametrize("cpp", REACHES_NOTHING_NATIVELY.values(), ids=REACHES_NOTHING_NATIVELY)
def test_who_does_what_native_kernels_do_reaches_for_nothing(cpp: str) -> None:
    assert not worst(native(cpp)) & REACHING


def worst(source: str) -> set[str]:
    return {f"{severity}:{name}" for name, severity in said(source).items()}
