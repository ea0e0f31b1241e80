"""Compiles a HIP submission's own text for the host, where each lane is a fiber of a CPU thread: an oracle for tests.

The text is compiled as C++ with `host_lanes/hip/hip_runtime.h` in the place of HIP's header; only `<<<...>>>`, which
C++ lacks, becomes a call. Neither code for gfx942 nor the machine takes part.
"""

import ctypes
import importlib.util
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch.utils import cpp_extension

from kernel_scientist.gpu.fake.device import replaced
from kernel_scientist.gpu.toolchains import hip

INCLUDE = Path(__file__).parent / "host_lanes"
MOST_DIMENSIONS = 6
_LAUNCH = re.compile(r"(\w+)<<<(.+?)>>>\(", re.DOTALL)


class HostTensor(ctypes.Structure):
    """The header's `torch::Tensor`."""

    _fields_ = (("data", ctypes.c_void_p), ("dims", ctypes.c_long), ("sizes", ctypes.c_long * MOST_DIMENSIONS))


def imported(path: Path, scratch: Path) -> ModuleType:
    """Import a HIP submission whose extension is compiled for the host; its tensors lie in main memory."""
    spec = importlib.util.spec_from_file_location(f"on_host_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)

    def load_inline(name: str, cuda_sources: list[str], functions: list[str], **given: Any) -> SimpleNamespace:
        flags = [flag for flag in given["extra_cuda_cflags"] if flag.startswith("-D")]
        library = _built(cuda_sources[0], functions, flags, scratch / name)
        return SimpleNamespace(**{one: _callable(getattr(library, f"call_{one}")) for one in functions})

    with replaced([(cpp_extension, "load_inline", load_inline)]):
        spec.loader.exec_module(module)
    return module


def _built(text: str, functions: list[str], flags: list[str], file: Path) -> ctypes.CDLL:
    source = _LAUNCH.sub(r"host_lanes::launched(\1, \2)(", text)
    for name in functions:
        parameters = re.search(rf"\bvoid {name}\((torch::Tensor[^)]*)\)", text)
        assert parameters is not None, f"{name} takes other than tensors"
        given = ", ".join(f"of[{n}]" for n in range(parameters[1].count("torch::Tensor")))
        source += f'\nextern "C" void call_{name}(const torch::Tensor* of) {{ {name}({given}); }}\n'
    code, library = file.with_suffix(".cpp"), file.with_suffix(".so")
    code.write_text(source)
    tools = hip.find()
    assert not isinstance(tools, str), tools
    options = ("-x", "c++", "-std=c++20", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-Wno-everything")
    command = [tools.program, *options, *flags, f"-I{INCLUDE}", str(code), "-o", str(library), "-lstdc++", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return ctypes.CDLL(str(library))


def _callable(function: Any) -> Callable[..., None]:
    def call(*given: torch.Tensor) -> None:
        tensors = [HostTensor(x.data_ptr(), x.dim(), (ctypes.c_long * MOST_DIMENSIONS)(*x.shape)) for x in given]
        function((HostTensor * len(tensors))(*tensors))

    return call
