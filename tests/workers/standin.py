"""A worker pool whose workers use a stand-in for a GPU: the whole path for GPUs, except the vendor's library.

`standin_runtime.cpp` takes its place; its streams are times. A kernel's compiled functions run on the CPU when they are
launched, and take the same time on the device's stream. torch's operations take none there. Everything else is real:
processes, sandbox, memory that two processes map, the cache sweep, the delay before a call, seals.
"""

import ctypes
import functools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernel_scientist.compilers import cpp, extension, gxx
from kernel_scientist.compilers.request import BuildRequest
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.device_memory import Sweep
from kernel_scientist.workers.runtime import Runtime
from kernel_scientist.workers.untrusted import buffers
from kernel_scientist.workers.untrusted.delay import Delay
from kernel_scientist.workers.worker_memory import EvaluatorsGpu
from kernel_scientist.workers.worker_pool import WorkerPool

LIBRARY = "STANDIN_RUNTIME"
SWEEP_BYTES, MEMORY_BYTES, DELAY_US = 1 << 17, 8 << 30, 5000
"""The delay is long, because on a busy machine a launch takes long."""


def library() -> Path:
    """Return the stand-in, built."""
    built = gxx.build(BuildRequest(Path(__file__).with_name("standin_runtime.cpp").read_text(), {}, ["-pthread"]))
    assert built.path is not None, built.report.log
    return built.path


def runtime(path: str = "") -> Runtime:
    """Return the stand-in as the GPU's runtime library of this process."""
    handle = ctypes.CDLL(path or str(library()))
    return Runtime(handle, "standin", handle, "standin")


def delay() -> Delay:
    """Return the delay, as the stand-in launches it."""
    length = ctypes.c_int32(DELAY_US)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(length))
    return Delay(0, 1, 1, 0, arguments, (length,))


class Shop(WorkerPool):
    """A pool whose workers use the stand-in."""

    def __init__(self, harness: Harness) -> None:
        super().__init__(harness, preload=("tests.workers.standin",))
        self.on_gpu = True

    @functools.cached_property
    def gpu(self) -> EvaluatorsGpu:
        """The stand-in in this process."""
        own = runtime()
        return EvaluatorsGpu(own, Sweep(own, self.device, SWEEP_BYTES), MEMORY_BYTES)

    def _command(self, control: str) -> list[str]:
        command = super()._command(control)
        if self.enclosure == "bubblewrap":  # it shows no worker this module and the stand-in
            seen = [part for path in (Path(__file__).parent, library()) for part in ("--ro-bind", str(path), str(path))]
            place = command.index("--chdir")
            command[place:place] = seen
        return command

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), LIBRARY: str(library())}


class Library(cpp.SharedObject):
    """A kernel's library, whose functions take time on the device."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        call = _on_device(super().__getattr__(name))
        setattr(self, name, call)
        return call


def _on_device(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        since = ctypes.c_int64(time.monotonic_ns())
        result = function(*arguments, **named)
        loaded.handle.ran(since)
        return result

    return call


if LIBRARY in os.environ:  # in a workers' parent: what torch has loaded is the stand-in
    loaded = runtime(os.environ[LIBRARY])
    cpp.SharedObject = Library
    plain = extension._counted  # pyright: ignore[reportPrivateUsage]
    extension._counted = lambda function: plain(_on_device(function))  # pyright: ignore[reportPrivateUsage]
    buffers.Runtime = type("Standin", (), {"loaded": staticmethod(lambda: loaded)})
    from kernel_scientist.workers.untrusted import delay as of_workers

    of_workers.compiled = lambda device: delay()
