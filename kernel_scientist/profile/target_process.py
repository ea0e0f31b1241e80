"""The program that runs under a profiler: `python -P -m kernel_scientist.profile.target_process FOLDER`.

In the folder lie `kernel.py`, `request.json`, what was built for the kernel, and each case's inputs; expected outputs,
tolerances and seeds do not. It calls the kernel once on each case, so that all is compiled and tuned, lets nothing be
started any more, and calls it once more on each case, caches swept, between two markers.
Untrusted from the moment that the kernel is imported. It says nothing: who counts is the profiler.
"""

import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from kernel_scientist.compile import cpp, extension, gpumode_compat
from kernel_scientist.sandbox import protocol, seccomp

REQUEST, KERNEL, BUILDS = "request.json", "kernel.py", "builds"
SWEEP_BYTES = 768 << 20
"""As a worker's."""


def built(request: extension.Request) -> str:
    """Return the name of what was built for a request."""
    return hashlib.sha256(json.dumps(request._asdict(), sort_keys=True).encode()).hexdigest() + ".so"


def main() -> None:
    """Make the calls."""
    os.chdir(sys.argv[1])
    request: dict[str, Any] = json.loads(Path(REQUEST).read_text())
    device, cases = str(request["device"]), request["cases"]
    on_gpu = device != "cpu"
    if on_gpu:  # the driver and the profiler must have met before the sandbox closes
        torch.zeros(1, device=device)
        torch.cuda.synchronize()
    seccomp.apply(seccomp.Limits.of(request["limits"]))
    kernel = _imported()
    for number, case in enumerate(cases):
        kernel(_inputs(number, case, device))
        _end(on_gpu)
    if on_gpu and request["limits"]["level"] != "none":
        seccomp.seal()
    for number, case in enumerate(cases):
        _counted(kernel, _inputs(number, case, device), on_gpu, request["profiler"] == "ncu")


def _counted(kernel: Callable[[Any], Any], data: Any, on_gpu: bool, by_range: bool) -> None:
    """Call a kernel between two markers. `by_range`: nothing else is to be profiled."""
    if not on_gpu:
        kernel(data)
        return
    torch.ones(SWEEP_BYTES // 8, dtype=torch.int64, device="cuda").sum()
    _end(True)
    cuda: Any = torch.cuda
    if by_range:
        cuda.profiler.start()
    cuda._sleep(1)
    _end(True)
    kernel(data)
    _end(True)
    cuda._sleep(1)
    _end(True)
    if by_range:
        cuda.profiler.stop()


def _end(on_gpu: bool) -> None:
    if on_gpu:
        torch.cuda.synchronize()


def _inputs(number: int, case: dict[str, Any], device: str) -> Any:
    data, buffers = Path(f"{number}.bin").read_bytes(), list[bytearray]()
    for size in case["sizes"]:
        buffers.append(bytearray(data[:size]))
        data = data[size:]
    return protocol.decode(case["data"], buffers, lambda form, part: protocol.tensor(form, part).to(device))


def _imported() -> Callable[[Any], Any]:
    def library(request: extension.Request) -> str:
        found = Path(BUILDS).resolve() / built(request)
        if not found.exists():
            raise cpp.CompileError("this was not asked for when the judge imported the kernel")
        return str(found)

    cpp.set_builder(library)
    gpumode_compat.provide()
    path = Path(KERNEL).resolve()
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel"] = module
    with extension.built_by(library, path.read_text()):
        spec.loader.exec_module(module)
    return module.custom_kernel


if __name__ == "__main__":
    main()
