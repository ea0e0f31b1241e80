"""Where first light takes place: a GPU or the stand-in for its runtime, its workers, the kernels that are run."""

import contextlib
import ctypes
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.first_light import layers
from benchmarks.first_light.outcome import Asked
from kernel_scientist import problems
from kernel_scientist.hardware import gpu
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Case, Kernel
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.native import Stopped
from kernel_scientist.workers.runtime import Runtime
from kernel_scientist.workers.worker_pool import WorkerPool

if TYPE_CHECKING:
    from kernel_scientist.workers.device_memory import Sweep

LIMITS: dict[str, Any] = {"stages": 1, "blocks": 2, "pairs": 0, "noise_runs": 0, "gpu_warmup_s": 0.5}
"""Settings of the evaluator: one short timing."""


class LightPool(WorkerPool):
    """A pool whose workers may leave out a layer of the sandbox."""

    without = ""

    def leave_out(self, layer: str) -> None:
        """Leave out a layer in all workers; to be called before the pool is entered."""
        self.without = layer
        self.preload = (*self.preload, layers.__name__)
        if layer == layers.BUBBLEWRAP:
            self.enclosure = ""
        if layer in (layers.STOPPING, layers.EVERY):
            vars(self.native)["stopped"] = _running

    def _command(self, control: str) -> list[str]:
        command = super()._command(control)
        if self.without and self.enclosure == "bubblewrap":  # it shows no worker this folder
            place, folder = command.index("--chdir"), str(Path(__file__).parent)
            command[place:place] = ["--ro-bind", folder, folder]
        return command

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), **({layers.VARIABLE: self.without} if self.without else {})}


@dataclass(frozen=True)
class Here(Asked):
    """The GPU of this host, or the stand-in."""

    @property
    def device(self) -> str:
        """torch's name for the device."""
        return "cpu" if self.standin else "cuda"

    def runtime(self) -> Runtime:
        """Return the GPU's runtime library, with a context on the GPU."""
        if self.standin:
            from tests.workers import standin

            return standin.runtime()
        import torch

        torch.zeros(1, device=self.device)
        return Runtime.loaded()

    def pool(self, **limits: Any) -> WorkerPool:
        """Return a pool of workers, to be entered. Without bubblewrap and Landlock they can read files."""
        harness = Harness.model_validate({**LIMITS, **limits})
        if self.without == layers.EVERY:
            harness = harness.model_copy(update={"sandbox": "none"})
        try:
            pool = self._pool(harness)
        except SetupError:
            pool = self._pool(harness.model_copy(update={"sandbox": "basic"}))
        if self.without:
            pool.leave_out(self.without)
        return pool

    def _pool(self, harness: Harness) -> LightPool:
        if not self.standin:
            return LightPool(harness, self.device)
        from tests.workers import standin

        class StandinPool(LightPool, standin.Shop):
            pass

        return StandinPool(harness)

    def lock(self) -> str:
        """Return the name of the lock that every timing on the device holds."""
        if self.standin:
            return "first-light-standin"
        import torch

        return gpu.lock("rocm" if torch.version.hip else "cuda")

    def sweep(self, runtime: Runtime, mib: int = 0) -> "Sweep":
        """Return a sweep of the caches; of the size that timings use, if none is given."""
        from kernel_scientist.workers.device_memory import Sweep

        return Sweep(runtime, self.device, 1 << 17 if self.standin else mib << 20)

    def problem(self, name: str) -> Problem:
        """Return a problem with inputs for the device."""
        return problems.find(name, self.device)

    def kernel(self, problem: str, language: str = "") -> Kernel:
        """Return a problem's fastest seed in a language: Triton's on a GPU, C++'s on the stand-in."""
        known = language or ("cpp" if self.standin else "triton")
        seed = self.problem(problem).seeds(known)[-1]
        return Kernel.model_validate({"name": seed.stem, "language": known, "source": seed.read_text()})

    def case(self, problem: str) -> Case:
        """Return the case that is timed: on a GPU long enough that launches do not matter, but short to send."""
        small: dict[str, dict[str, Any]] = {"identity": {"size": 4096}, "rmsnorm": {"rows": 16, "cols": 64}}
        large: dict[str, dict[str, Any]] = {"identity": {"size": 1 << 24}, "rmsnorm": {"rows": 4096, "cols": 4096}}
        sizes = (small if self.standin else large).get(problem)
        return Case(sizes=sizes, seed=1) if sizes else self.problem(problem).profile("auto").benchmarks[0]


def imported(source: str) -> Callable[[Any], Any]:
    """Import a kernel from a file, because Triton reads its source from there; return its function."""
    from kernel_scientist.calibrate import suite  # it imports torch, which is the first step's work

    return suite.imported(source, Path(tempfile.gettempdir()))


def _running(*_: object, **__: object) -> contextlib.nullcontext[Stopped]:
    """Replace `NativeHarness.stopped`: no thread is stopped."""
    return contextlib.nullcontext(Stopped((ctypes.c_int * 2)(), -1))
