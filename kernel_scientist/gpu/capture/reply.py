"""The reply of the inspecting process, and its words about errors.

Runs in an untrusted process: imports the standard library, torch, triton, and modules of this package.
"""

import json
import signal
import time
import traceback
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from kernel_scientist.gpu.capture.files import standalone
from kernel_scientist.gpu.capture.launches import LaunchRecorder, tunables
from kernel_scientist.records.gpu import Build

WORDS = 4000
"""Maximum length of an error message in the reply."""
COMPILER_S = 25.0
"""CPU seconds for one kernel that is compiled alone, after which the process ends."""


@dataclass
class InspectionProgress:
    """What the process found so far."""

    recorder: LaunchRecorder
    builds: list[Build]
    failure: str = ""
    refused: bool = False

    def keep(self, module: ModuleType, skip: Collection[str] = (), small: Collection[str] = ()) -> None:
        """Compile the module's kernels that were not launched, with invented arguments; write the reply after each.

        The file `compiling` names the kernel meanwhile: the compiler may end the process. Kernels of `skip` are left
        out, those of `small` get small tiles.
        """
        text, recorder = Path("kernel.py").read_text(), self.recorder
        until, launched = recorder.deadline, recorder.functions
        self.write()
        for kernel in standalone.kernels(module):
            if kernel.name in skip or any(kernel.function is one for one in launched):
                continue
            Path("compiling").write_text(f"{kernel.line} {kernel.name}")
            signal.setitimer(signal.ITIMER_PROF, COMPILER_S)  # its signal ends the process, in the compiler's code too
            facts = recorder.facts
            for compiled, told in standalone.compiled(kernel, module, text, until, facts, words, kernel.name in small):
                recorder.missed.append(f"no call: {told}"[:WORDS])
                if compiled is not None:
                    recorder.keep(compiled, tunables(kernel.configs))
                self.write()
            signal.setitimer(signal.ITIMER_PROF, 0)
            Path("compiling").unlink()
        recorder.timed_out |= time.monotonic() > until

    def write(self) -> None:
        """Write the reply and the assembly of the code so far."""
        recorder = self.recorder
        for code in recorder.codes.values():
            place = Path(f"{code.number}.s")
            if not place.exists():
                place.write_text(code.text)
        answer = {
            "failure": self.failure,
            "refused": self.refused,
            "timed_out": recorder.timed_out,
            "launches": recorder.launches,
            "operations": recorder.operations,
            "codes": [code.object.model_dump() for code in recorder.codes.values()],
            "missed": recorder.missed,
            "inline": [build.model_dump() for build in self.builds],
        }
        temporary = Path("answer.json.new")
        temporary.write_text(json.dumps(answer))
        temporary.replace("answer.json")


def is_compilation(error: BaseException | None) -> bool:
    """Whether the compiler refused a kernel, or the GPU would refuse its code."""
    while error is not None:
        if type(error).__module__.startswith(("triton.compiler", "triton.runtime.errors")):
            return True
        if type(error).__name__ in (
            "PassManagerError",
            "CompilationError",
            "ForeignAssemblyError",
            "RefusedLaunchError",
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def words(error: BaseException) -> str:
    """Return the error message and its line: the kernel's line that the compiler names, or the file's last."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name == "kernel.py"]
    line = _compiled_line(error) or (lines[-1] if lines else None)
    where = f"kernel.py, line {line}: " if line else ""
    return f"{where}{type(error).__name__}: {error}"[:WORDS]


def _compiled_line(error: BaseException) -> int | None:
    """Return the file's line number of a compilation error; Triton counts from the function's first line."""
    source, node = getattr(error, "src", None), getattr(error, "node", None)
    before, found, _ = Path("kernel.py").read_text().partition(source or chr(0))
    return before.count("\n") + node.lineno if found and node is not None else None
