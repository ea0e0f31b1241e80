"""Sets up the machine in a worker: a pretended GPU, whose launches the machine executes.

Runs in the untrusted worker: standard library, numpy, torch, triton, and modules of this package.
"""

import ctypes
import os
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import _tensor_str

from kernel_scientist.gpu.fake import host_tensors
from kernel_scientist.gpu.fake.device import pretended, replaced
from kernel_scientist.gpu.fake.facts import Facts
from kernel_scientist.gpu.fake.host_tensors import tensors
from kernel_scientist.gpu.machine import library
from kernel_scientist.gpu.machine.allocations import Allocations, extent
from kernel_scientist.gpu.machine.checking import Checks
from kernel_scientist.gpu.machine.executor import Executor
from kernel_scientist.gpu.machine.host.worker import HostCode
from kernel_scientist.gpu.machine.input_memory import InputMemory
from kernel_scientist.gpu.machine.sampler import Sampler, reported
from kernel_scientist.gpu.machine.triton_launches import TritonLaunches
from kernel_scientist.gpu.machine.undefined import CheckedAllocations

MOST_RUNS = 100_000
UNWRITTEN = 0xFF
"""Bytes of memory that nobody wrote, where only a part of a launch is executed: NaN in every floating-point type."""
LIBRARY = library.loaded(Path(os.environ["KERNEL_SCIENTIST_MACHINE"]))
"""Loaded before workers are forked: they share it."""
STAND_IN = os.environ.get("KERNEL_SCIENTIST_STAND_IN", "")
"""The stand-in for HIP's runtime; empty where none is built."""
if STAND_IN:
    ctypes.CDLL(STAND_IN)  # no file of the evaluator's can be opened later


class WorkerMachine:
    """Wraps a submission's `custom_kernel`."""

    def __init__(self, settings: dict[str, Any], close: Callable[[bool], None]) -> None:
        """`settings`: `facts` of the GPU; `writes` and `updates`, the positions of writable inputs; `threads`.
        `close`: closes the inputs' memory to everything in this process, or opens it again."""
        os.environ["TRITON_CACHE_DIR"] = str(Path.cwd() / "cache")
        self.facts = Facts(**settings["facts"])
        self.writes: tuple[int, ...] = tuple(settings["writes"])
        self.writable = (*self.writes, *settings["updates"])
        self.memory = InputMemory(close)
        self.executor = Executor(LIBRARY, settings["threads"], self.facts, memory=self.memory)
        self.triton = TritonLaunches(self.facts, self.executor)
        self.host = HostCode(STAND_IN, self.facts, self.executor) if STAND_IN else None
        self.reports: list[dict[str, Any]] = []
        self.partly = False
        """Whether only a part of each launch is executed."""

    def pretending(self) -> AbstractContextManager[None]:
        """Make torch report the GPU within the context."""
        return pretended(self.facts)

    def choose(
        self,
        seconds: float,
        tuned: Sequence[tuple[str, dict[str, str]]],
        counted: bool,
        checked: bool,
        descending: bool,
    ) -> None:
        """Execute only so many workgroups of each launch from now on as `seconds` suffice for; 0: all.

        `tuned`: kernel and constants of the launches that an autotuner makes. `counted`: also count what launches do,
        by samples of their workgroups. `checked`: make checking runs; without `tuned`
        an autotuner takes one configuration after the other. `descending`: the order of sums in matrix instructions.
        """
        self.partly, self.executor.sample_s, self.executor.descending_sums = not checked, seconds, descending
        self.triton.assumptions.checked = checked
        self.triton.tuned = None if checked and not tuned else tuned
        self.executor.sampler = Sampler(self.facts) if counted else None

    def wrapped(self, kernel: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return the kernel, with its launches executed by the machine."""

        def custom_kernel(data: Any) -> Any:
            pattern = UNWRITTEN if self.partly else random.SystemRandom().randrange(1, 255)
            start = time.process_time()
            self.executor.pattern = pattern
            self.executor.seed = random.SystemRandom().getrandbits(63)
            checks = self.executor.checks = None if self.partly else Checks(LIBRARY)
            if checks is None:
                allocations = Allocations(data, self.writable, pattern, self.memory)
            else:
                allocations = CheckedAllocations(data, self.writable, checks, self.executor.seed, self.memory)
            self.executor.allocations = allocations
            allocations.launches = lambda: len(self.executor.launched)
            output = None
            if self.partly or checks is not None:
                items = list(data) if isinstance(data, list | tuple) else [data]
                for position in self.writes:
                    for tensor in tensors(items[position]):
                        allocations.poison(tensor)
            host_tensors.keep(data, host=False)
            try:
                with self.pretending(), _lists(), allocations, self.memory.closed():
                    output = kernel(data)
                    if self.host is not None:
                        self.host.check()
            finally:
                if isinstance(allocations, CheckedAllocations):
                    allocations.reached(output if output is not None else [])
                self.reports.append(self._report(output, time.process_time() - start))
            return output

        return custom_kernel

    def _report(self, output: Any, seconds: float) -> dict[str, Any]:
        found, launched = self.executor.take()
        every, run = sum(one.groups for one in launched), sum(one.run for one in launched)
        coverage = {
            "launches": sum(one.groups > 0 for one in launched),
            "programs": every,
            "programs_run": run,
            "programs_checked": sum(one.checked for one in launched),
            "kernels_checked": sorted({one.kernel for one in launched if one.checked}),
            "configurations": [asdict(one) for one in self.triton.configurations],
            "seconds": seconds,
        }
        self.triton.end_call()
        report: dict[str, Any] = {"defects": [asdict(d) for d in found], "coverage": coverage}
        if self.partly and output is not None:
            whole = run == every
            report["known"] = [[(0, t.numel())] if whole else _known(t) for t in tensors(output)]
            report["extent"] = {
                "launches": [(one.kernel, one.run, one.groups) for one in launched],
                "parts_of_several": not whole and (len(launched) > 1 or self._torch_wrote(output)),
                "seconds": seconds,
            }
            if self.executor.sampler is not None:
                report["counts"] = reported(
                    [one.counted for one in launched if one.counted is not None], self.executor.sources
                )
                report["operations"] = self.executor.allocations.operations if self.executor.allocations else []
        return report

    def _torch_wrote(self, output: Any) -> bool:
        """Whether an operation of torch wrote to memory of an output."""
        written = self.executor.allocations.written if self.executor.allocations else set[int]()
        return any(one.untyped_storage().data_ptr() in written for one in tensors(output))

    def report(self) -> dict[str, Any]:
        """Return the reports since the last call."""
        found, self.reports = self.reports, []
        return {"calls": found}


def _lists() -> AbstractContextManager[None]:
    """Bring the values of a tensor of the GPU to the host within the context, before torch lists or prints them."""
    listed, printed = torch.Tensor.tolist, _tensor_str._str  # pyright: ignore[reportPrivateUsage]

    def tolist(tensor: torch.Tensor) -> Any:
        return listed(host_tensors.fetched(tensor))

    def text(tensor: torch.Tensor, **options: Any) -> str:
        return printed(host_tensors.fetched(tensor), **options)

    return replaced([(torch.Tensor, "tolist", tolist), (_tensor_str, "_str", text)])


def _known(tensor: torch.Tensor) -> list[tuple[int, int]]:
    """Return the elements that were written, as (first, count) in flattened order."""
    if tensor.numel() == 0 or extent(tensor)[1] == 0:
        return []
    raw = tensor.detach().contiguous().view(torch.uint8).numpy().reshape(tensor.numel(), tensor.element_size())
    width = next(width for width in (8, 4, 2, 1) if tensor.element_size() % width == 0)
    words = raw.view(f"u{width}")
    written = words != np.full(width, UNWRITTEN, np.uint8).view(words.dtype)[0]
    known = written[:, 0] if written.shape[1] == 1 else written.any(axis=1)
    places = np.flatnonzero(np.diff(known, prepend=False, append=False)).tolist()
    return [(first, end - first) for first, end in zip(places[::2], places[1::2], strict=True)][:MOST_RUNS]
