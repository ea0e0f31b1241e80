"""The folder that a subject works in: the kernel, what was built for it, and inputs that nobody has seen."""

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_scientist.compile import build as builder
from kernel_scientist.compile.extension import Request
from kernel_scientist.evaluate.correctness.inputs import InputGenerator
from kernel_scientist.evaluate.evaluator import Evaluator
from kernel_scientist.profile import target_process
from kernel_scientist.profile.dispatches import CountingError
from kernel_scientist.records.kernel import Case, Kernel
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure

MOST_INPUTS = 1 << 30
"""Bytes of inputs in one folder; cases beyond are left out."""
MOST_OUTPUT = 64 << 20
"""Bytes of a file that a subject, or a profiler in its process, may write."""


@dataclass(frozen=True)
class Scene:
    """A prepared folder."""

    folder: Path
    cases: tuple[str, ...]

    @property
    def program(self) -> list[str]:
        """The command that plays it."""
        return [sys.executable, "-P", "-m", "kernel_scientist.profile.target_process", str(self.folder)]


def prepare(evaluator: Evaluator, kernel: Kernel, cases: Sequence[Case], folder: Path, profiler: str) -> Scene:
    """Fill a folder for a subject. Raises CountingError when the kernel cannot be built or no case fits."""
    (folder / target_process.BUILDS).mkdir()
    (folder / target_process.KERNEL).write_text(kernel.source)
    if kernel.language != "triton":
        _build(evaluator, kernel, folder / target_process.BUILDS)
    inputs = InputGenerator(
        evaluator.problem
    )  # its own: what the problem calls static is not what is timed with either
    told: list[dict[str, Any]] = []
    names: list[str] = []
    left = MOST_INPUTS
    for case in cases:
        data, buffers = inputs.message(inputs.draw(case))
        sizes = [memoryview(b).nbytes for b in buffers]
        if sum(sizes) > left:
            continue
        left -= sum(sizes)
        _write(folder / f"{len(names)}.bin", buffers)
        told.append({"data": data, "sizes": sizes})
        names.append(case.name)
    if not names:
        raise CountingError("no case's inputs are small enough to be handed to a profiler's subject")
    request = {"profiler": profiler, "device": evaluator.pool.device, "cases": told}
    (folder / target_process.REQUEST).write_text(json.dumps({**request, "limits": _limits(evaluator, folder)}))
    return Scene(folder, tuple(names))


def _limits(evaluator: Evaluator, folder: Path) -> dict[str, Any]:
    """Return the limits that a worker has (`sandbox.Limits`)."""
    pool = evaluator.pool
    return {
        "level": evaluator.harness.sandbox,
        "enclosure": pool.enclosure if pool.enclosure == "bubblewrap" else "",
        "device": pool.device,
        "scratch": str(folder),
        "memory_bytes": evaluator.harness.memory_mib << 20,
        "inputs_bytes": 0,
        "output_bytes": MOST_OUTPUT,
        "other_user": 0,
        "programs": pool.programs,
        "threads": True,
    }


def _build(evaluator: Evaluator, kernel: Kernel, folder: Path) -> None:
    """Let a worker import the kernel, and keep what is built for it."""

    def build(request: Request) -> tuple[Path | None, str]:
        done = builder.build(request, evaluator.pool.device, evaluator.harness.build_timeout_s)
        if done.path is not None:
            shutil.copyfile(done.path, folder / target_process.built(request))
        return done.path, done.report.log

    try:
        with evaluator.pool.worker() as worker:
            worker.load(kernel.source, build)
    except KernelFailure as failure:
        raise CountingError(f"its import failed this time: {failure}") from failure


def _write(path: Path, buffers: Sequence[protocol.Buffer]) -> None:
    with path.open("wb") as file:
        for buffer in buffers:
            file.write(buffer)
