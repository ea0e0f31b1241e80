"""A worker pool whose workers use a stand-in for a GPU: the whole path for GPUs, except the vendor's library.

`standin_runtime.cpp` takes its place; its streams are threads, and torch computes on the CPU. Everything else is real:
processes, sandbox, encrypted inputs, the cache sweep, keys at the start barrier, seals.
"""

import ctypes
import os
from pathlib import Path

from kernel_scientist.compile import gxx
from kernel_scientist.compile.request import BuildRequest
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.pool import WorkerPool
from kernel_scientist.workers.untrusted import buffers
from kernel_scientist.workers.untrusted.buffers import Runtime

LIBRARY = "STANDIN_RUNTIME"
SWEEP_BYTES = 1 << 17


def library() -> Path:
    """Return the stand-in, built."""
    built = gxx.build(BuildRequest(Path(__file__).with_name("standin_runtime.cpp").read_text(), {}, ["-pthread"]))
    assert built.path is not None, built.report.log
    return built.path


class Shop(WorkerPool):
    """A pool whose workers use the stand-in."""

    def __init__(self, harness: Harness) -> None:
        super().__init__(harness, preload=("tests.workers.standin",))
        self.on_gpu = True

    def _command(self, control: str) -> list[str]:
        command = super()._command(control)
        if self.enclosure == "bubblewrap":  # it shows no worker this module and the stand-in
            seen = [part for path in (Path(__file__).parent, library()) for part in ("--ro-bind", str(path), str(path))]
            place = command.index("--chdir")
            command[place:place] = seen
        return command

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), LIBRARY: str(library())}


if LIBRARY in os.environ:  # in a workers' parent: what torch has loaded is the stand-in
    loaded = Runtime(ctypes.CDLL(os.environ[LIBRARY]), "standin")
    Runtime.loaded = staticmethod(lambda: loaded)
    buffers.sweep_bytes = lambda device: SWEEP_BYTES
