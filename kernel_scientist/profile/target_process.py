"""The program that runs under a profiler: `python -P -m kernel_scientist.profile.target_process FOLDER`.

The folder holds `kernel.py`, `request.json`, the kernel's builds, and each case's inputs, but no expected outputs,
tolerances or seeds. The program calls the kernel once on each case, so that all is compiled and tuned. It then allows
no new process and calls the kernel once more on each case, with swept caches, between two markers. For perf it calls
the kernel on each case for a while, and turns perf's events on for the calls only.
The process is untrusted once the kernel is imported. It reports nothing; the profiler does the counting.
"""

import functools
import hashlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from kernel_scientist.compilers import cpp, extension, gpumode_compat
from kernel_scientist.compilers.request import CompileError, Request
from kernel_scientist.profile import perf
from kernel_scientist.sandbox import seccomp, storages
from kernel_scientist.workers import execution_environment

REQUEST, KERNEL, BUILDS = "request.json", "kernel.py", "builds"
SWEEP_BYTES = 768 << 20
"""Bytes of the cache sweep, as in a worker on AMD's GPUs."""
SAMPLED_S, MOST_S = 1.0, 12.0
"""Seconds of CPU time that are sampled, and most that it may take, with the inputs' making."""
MOST_COPIES, COPIED_BYTES = 64, 64 << 20
"""Most calls in a row, and bytes of their inputs."""


def build_name(request: Request) -> str:
    """Return the file name of a request's build."""
    return hashlib.sha256(json.dumps(request._asdict(), sort_keys=True).encode()).hexdigest() + ".so"


def main() -> None:
    """Make the calls."""
    os.chdir(sys.argv[1])
    request: dict[str, Any] = json.loads(Path(REQUEST).read_text())
    device, cases = str(request["device"]), request["cases"]
    on_gpu = device != "cpu"
    if on_gpu:  # driver and profiler must be initialised before the sandbox closes
        torch.zeros(1, device=device)
        torch.cuda.synchronize()
    events = _Events() if request["profiler"] == "perf" else None
    if events is not None:
        execution_environment.enter(request["cores"], 0)
    seccomp.confine_worker(seccomp.Limits(**request["limits"]))
    kernel = _imported(request["files"])
    for number, case in enumerate(cases):
        kernel(_inputs(number, case, device))
        if on_gpu:
            torch.cuda.synchronize()
    if on_gpu and request["limits"]["level"] != "none":
        seccomp.seal(on_gpu)
    for number, case in enumerate(cases):
        if events is not None:
            _call_sampled(kernel, functools.partial(_inputs, number, case, device), sum(case["sizes"]), events)
            continue
        data = _inputs(number, case, device)
        if on_gpu:
            _call_counted(functools.partial(kernel, data), request["profiler"] == "ncu")
        else:
            kernel(data)


def _call_counted(call: Callable[[], object], in_range: bool) -> None:
    """Make a call between two markers. `in_range`: the profiler counts only between its start and stop."""
    cuda: Any = torch.cuda
    marker = functools.partial(cuda._sleep, 1)
    torch.ones(SWEEP_BYTES // 8, dtype=torch.int64, device="cuda").sum()
    cuda.synchronize()
    if in_range:
        cuda.profiler.start()
    for step in (marker, call, marker):
        step()
        cuda.synchronize()
    if in_range:
        cuda.profiler.stop()


class _Events:
    """Turns perf's events on and off, by its pipes, which are opened before the sandbox closes."""

    def __init__(self) -> None:
        self._control = os.open(perf.CONTROL, os.O_WRONLY)
        self._acknowledged = os.open(perf.ACKNOWLEDGED, os.O_RDONLY)

    def turn(self, on: bool) -> None:
        """Turn the events on or off, and wait until that is done."""
        os.write(self._control, b"enable\n" if on else b"disable\n")
        os.read(self._acknowledged, 64)


def _call_sampled(kernel: Callable[[Any], Any], draw: Callable[[], Any], size: int, events: _Events) -> None:
    """Call a kernel for SAMPLED_S of CPU time with the events on, which they are during rows of calls only.

    Each call gets inputs that no call has used, of `size` bytes.
    """
    copies = max(1, min(MOST_COPIES, COPIED_BYTES // max(size, 1)))
    left, end = SAMPLED_S, time.monotonic() + MOST_S
    while left > 0 and time.monotonic() < end:
        row = [draw() for _ in range(copies)]
        events.turn(on=True)
        began = time.process_time()
        for data in row:
            kernel(data)
        left -= time.process_time() - began
        events.turn(on=False)


def _inputs(number: int, case: dict[str, Any], device: str) -> Any:
    with Path(f"{number}.bin").open("rb") as file:
        buffers = [bytearray(file.read(size)) for size in case["sizes"]]
    return gpumode_compat.with_objects(storages.restored(case["data"], buffers, device))


def _imported(files: dict[str, str]) -> Callable[[Any], Any]:
    def library(request: Request) -> str:
        found = Path(BUILDS).resolve() / build_name(request)
        if not found.exists():
            raise CompileError("the kernel did not ask for this build when the evaluator imported it")
        return str(found)

    gpumode_compat.provide(files)
    path = Path(KERNEL).resolve()
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel"] = module
    extension.replace_torchs(path.read_text())
    with cpp.built_by(library):
        spec.loader.exec_module(module)
    return module.custom_kernel


if __name__ == "__main__":
    main()
