"""The folder of a target process: the kernel, its builds, and fresh inputs."""

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernel_scientist.compilers.request import BuildRequest, Request
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.evaluation.inputs import InputGenerator
from kernel_scientist.problems.trees import tensors
from kernel_scientist.profile import target_process
from kernel_scientist.profile.dispatches import CountingError
from kernel_scientist.profile.profiler import Profiler
from kernel_scientist.records.kernel import Case, Kernel
from kernel_scientist.sandbox import protocol, storages
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.sandbox.seccomp import Limits

MOST_INPUTS = 1 << 30
"""Most bytes of inputs in one folder; cases beyond it are skipped."""
MOST_OUTPUT = 64 << 20
"""Largest file, in bytes, that a target process (or the profiler in it) may write."""


@dataclass(frozen=True)
class Workspace:
    """A prepared folder."""

    folder: Path
    cases: tuple[str, ...]
    compiled: Mapping[str, str]
    """The sources that `load` compiled, by name of the build; for perf the builds have lines of these."""

    @property
    def builds(self) -> Path:
        """The folder of the kernel's builds."""
        return self.folder.resolve() / target_process.BUILDS

    @property
    def program(self) -> list[str]:
        """The command of its target process."""
        return [sys.executable, "-P", "-m", "kernel_scientist.profile.target_process", str(self.folder)]


def prepare(evaluator: Evaluator, kernel: Kernel, cases: Sequence[Case], folder: Path, profiler: Profiler) -> Workspace:
    """Fill a folder. Raises CountingError if the kernel cannot be built or no case is small enough.

    The profiler loads a library into the target process, which reads the profiler's files after it is confined.
    """
    (folder / target_process.BUILDS).mkdir()
    (folder / target_process.KERNEL).write_text(evaluator.problem.adapted(kernel.source))
    compiled = dict[str, str]()
    if kernel.language != "triton":
        compiled = _build(evaluator, kernel, folder / target_process.BUILDS, profiler.name == "perf")
    inputs = InputGenerator(evaluator.problem)  # a new generator, so that static inputs differ from those of timings
    described: list[dict[str, Any]] = []
    names: list[str] = []
    left = MOST_INPUTS
    for case in cases:
        buffers: list[protocol.Buffer] = []
        drawn = inputs.draw(case).data
        data = storages.encode(drawn, tensors(drawn), buffers)
        sizes = [memoryview(buffer).nbytes for buffer in buffers]
        if sum(sizes) > left:
            continue
        left -= sum(sizes)
        with (folder / f"{len(names)}.bin").open("wb") as file:
            file.writelines(buffers)
        described.append({"data": data, "sizes": sizes})
        names.append(case.name)
    if not names:
        raise CountingError("no case's inputs are small enough for a profiler's target process")
    pool, harness = evaluator.pool, evaluator.harness
    limits = Limits(
        level=harness.sandbox,
        device=pool.device,
        scratch=str(folder),
        memory_bytes=harness.memory_mib << 20,
        inputs_bytes=0,
        output_bytes=MOST_OUTPUT,
        programs=pool.on_gpu,
        threads=True,
        readable=profiler.readable,
    )
    request = {"profiler": profiler.name, "device": pool.device, "cases": described, "limits": asdict(limits)}
    request |= {"files": evaluator.problem.sources, "cores": pool.cores}
    (folder / target_process.REQUEST).write_text(json.dumps(request))
    return Workspace(folder, tuple(names), compiled)


def with_lines(request: Request) -> Request:
    """Return a request for the same machine code, with the lines that it comes from (`-g1` changes no instruction).

    An extension stays as it is.
    """
    if not isinstance(request, BuildRequest):
        return request
    return request._replace(flags=[*(flag for flag in request.flags if flag != "-s"), "-g1"])


def _build(evaluator: Evaluator, kernel: Kernel, folder: Path, lines: bool) -> dict[str, str]:
    """Build what a kernel's file asks for; return the sources of `load` by name of the build."""
    build = evaluator.driver.builder([])
    compiled = dict[str, str]()

    def kept(request: Request) -> tuple[Path | None, str]:
        path, log = build(with_lines(request) if lines else request)
        if path is not None:
            name = target_process.build_name(request)
            shutil.copyfile(path, folder / name)
            if isinstance(request, BuildRequest):
                compiled[name] = request.source
        return path, log

    try:
        with evaluator.pool.worker() as worker:
            worker.load(evaluator.problem.adapted(kernel.source), kept, evaluator.problem.sources)
    except KernelFailure as failure:
        raise CountingError(f"the kernel's import failed this time: {failure}") from failure
    return compiled
