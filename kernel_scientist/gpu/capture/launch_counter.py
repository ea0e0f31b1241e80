"""Counts what a Triton launch does, by executing samples of its workgroups in the machine.

The inspecting process has no inputs, only their shapes: their values are zeros here. So a launch whose work may depend
on integers that nobody here knows is not counted; `PredictedEvaluator.check` counts it with real inputs.

Runs in untrusted processes: standard library, numpy, torch, and modules of this package.
"""

import contextlib
import ctypes
from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from kernel_scientist.gpu.fake.facts import Facts
from kernel_scientist.gpu.machine import launch as launches
from kernel_scientist.gpu.machine import triton_arguments
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.counts import Counts
from kernel_scientist.gpu.machine.dispatch import Grid, KernelLaunch, Options
from kernel_scientist.gpu.machine.executor import require_known
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.memory import Memory
from kernel_scientist.gpu.machine.sampler import Counted, Sampler
from kernel_scientist.gpu.model import executed
from kernel_scientist.gpu.model.executed import LaunchCounts
from kernel_scientist.gpu.model.predict import KernelLoad
from kernel_scientist.gpu.toolchains.quoted_sources import Sources
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.evaluation import CodeObject

MOST_INSTRUCTIONS = 500_000_000
"""Wave instructions of all workgroups that are executed of one launch: half a minute of CPU time."""
MOST_KNOWN = 16 << 20
"""Largest storage whose integers are put back after a launch was counted, in bytes."""


class UnknownValuesError(Exception):
    """What a launch does may depend on values that are not known here."""


@dataclass
class LaunchCounter:
    """Counts launches for a GPU that is not here."""

    library: Library
    facts: Facts
    gpu: Gpu
    _codes: dict[str, Code] = field(default_factory=dict[str, Code])

    def load(
        self, compiled: Any, bound: Mapping[str, Any], grid: Grid, code: CodeObject, unknown: Collection[int]
    ) -> tuple[KernelLoad, set[int]]:
        """Return what a launch does, and the storages of integers that it writes. What it changes there is put back.

        `unknown`: addresses of storages whose content is not real. Raises UnknownValuesError, or as the machine:
        NotSimulatedError, RuntimeError for a launch without end.
        """
        for name, value in bound.items():
            if any(one.untyped_storage().data_ptr() in unknown for one in _integers({name: value})):
                raise UnknownValuesError(f"{name} holds integers whose values only running it shows")
        launch = triton_arguments.launch(self._code(compiled.asm["amdgcn"]), compiled, bound, grid)
        memory = Memory()
        for storage in (tensor.untyped_storage() for tensor in triton_arguments.tensors(bound)):
            memory.add(storage.data_ptr(), storage.nbytes())
        with _restored(_integers(bound)) as written:
            counts = self._counted(launch, memory)
        counted = LaunchCounts.model_validate(Counted(launch, counts).plain(Sources()))
        statements = launch.code.listing.statements
        traffic, issue = executed.traffic(counted, statements, self.gpu), executed.issue(counted, statements)
        return KernelLoad(code, traffic, issue), written

    def _code(self, text: str) -> Code:
        if text not in self._codes:
            self._codes[text] = Code(self.library, text)
        return self._codes[text]

    def _counted(self, launch: KernelLaunch, memory: Memory) -> Counts:
        """Count samples; of a launch whose workgroups wait for each other, share out their work or add up what others
        have done, all of them run."""
        sampler = Sampler(self.facts)

        def run(chosen: Options) -> launches.LaunchResult:
            result = launches.run(launch, memory, replace(chosen, most_instructions=MOST_INSTRUCTIONS))
            name = launch.code.names[launch.name]
            require_known(launch.code, name, result, Sources())
            if result.gave_up:
                done = f"{result.instructions:,} wave instructions were executed"
                raise RuntimeError(f"{name} does not end, or takes too long to be counted: {done}")
            return result

        if not launch.code.listens:
            return sampler.sampled(run, launch)
        counts = run(Options(samples=sampler.whole(launch))).counts
        assert counts is not None
        return counts


def _integers(bound: Mapping[str, Any]) -> list[torch.Tensor]:
    """Return the arguments that hold indices, counters or locks. Integers of one byte are quantised numbers."""
    found = triton_arguments.tensors(bound)
    return [one for one in found if not (one.is_floating_point() or one.is_complex() or one.element_size() == 1)]


@contextlib.contextmanager
def _restored(tensors: Iterable[torch.Tensor]) -> Generator[set[int]]:
    """Put back what the context changes in small tensors: a counter that a launch advanced would be wrong for others.

    Yields the set to which the storages that were changed are added at the end, with all large ones.
    """
    storages = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in tensors}
    before = {place: ctypes.string_at(place, size) for place, size in storages.items() if 0 < size <= MOST_KNOWN}
    written = storages.keys() - before.keys()
    try:
        yield written
    finally:
        for place, content in before.items():
            if ctypes.string_at(place, len(content)) != content:
                written.add(place)
                ctypes.memmove(place, content, len(content))
