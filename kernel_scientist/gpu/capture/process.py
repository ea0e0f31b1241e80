"""The process that imports a submission and records what it compiles: `python -m kernel_scientist.gpu.capture.process`.

Its folder contains `kernel.py` and `request.json`. It writes `answer.json` and the assembly of the compiled code there,
and `begun` before it imports the submission: what fails earlier is a fault of the set-up.
It is untrusted from the moment it imports the submission, so its reply is treated as data.
"""

import gc
import importlib.util
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from triton.runtime import cache

from kernel_scientist.compile import gpumode_compat
from kernel_scientist.gpu.capture import recorded_builds, shapes, standalone
from kernel_scientist.gpu.capture.facts import Facts
from kernel_scientist.gpu.capture.fake_device import pretended
from kernel_scientist.gpu.capture.launches import Recorder
from kernel_scientist.gpu.capture.torch_recorder import TorchRecorder
from kernel_scientist.gpu.interpreter import numerics
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.hardware import gpus
from kernel_scientist.sandbox import seccomp

WORDS = 4000
"""Maximum length of an error message in the reply."""


def main() -> None:
    """Handle the request and write the reply."""
    os.environ |= {"TRITON_CACHE_DIR": str(Path("cache").resolve()), "HOME": str(Path.cwd())}
    cache.triton_key = lambda: ""  # the cache is this process's own, and the digest of Triton's files takes 0.3 s
    gc.freeze()
    request: dict[str, Any] = json.loads(Path("request.json").read_text())
    recorder = Recorder(
        facts=Facts(**request["facts"]),
        gpu=gpus.named(request["gpu"]),
        constants=Constants(**request["constants"]),
        deadline=time.monotonic() + request["seconds"],
    )
    numerics.install()
    recorder.install()
    failure, refused = "", False
    seccomp.confine_builder(programs=not recorder.facts.amd)  # Triton starts NVIDIA's assembler as a program
    with pretended(recorder.facts), recorded_builds.captured() as builds:
        kernel: Any = None
        Path("begun").touch()
        try:
            kernel = _imported()
        except Exception as error:
            failure = _words(error)
        for compiled, words in standalone.compiled(sys.modules["kernel"]) if kernel and request["alone"] else ():
            recorder.missed.append(f"no call: {words}")
            if compiled is not None:
                recorder.keep(compiled)
        for case in request["cases"] if kernel else []:
            data = shapes.made(case["data"])
            recorder.begin(case["name"], data)
            if time.monotonic() > recorder.deadline:
                recorder.missed.append(f"{recorder.case}: the time allowed for inspection was over")
                recorder.timed_out = True
                continue
            try:
                with TorchRecorder(recorder.called, recorder.unknown):
                    kernel(data)
            except Exception as error:
                if _is_compilation(error):
                    failure, refused = _words(error), True
                    break
                recorder.missed.append(f"{recorder.case}: {_words(error)}"[:WORDS])
    for code in recorder.codes.values():
        Path(f"{code.number}.s").write_text(code.text)
    answer = {
        "failure": failure,
        "refused": refused,
        "timed_out": recorder.timed_out,
        "launches": recorder.launches,
        "operations": recorder.operations,
        "codes": [code.object.model_dump() for code in recorder.codes.values()],
        "missed": recorder.missed,
        "inline": [build.message() for build in builds],
    }
    Path("answer.json").write_text(json.dumps(answer))


def _imported() -> Any:
    spec = importlib.util.spec_from_file_location("kernel", Path("kernel.py").resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel"] = module
    gpumode_compat.provide()
    spec.loader.exec_module(module)
    return module.custom_kernel


def _is_compilation(error: BaseException | None) -> bool:
    """Whether the compiler refused a kernel, or the GPU would refuse its code."""
    while error is not None:
        if type(error).__module__.startswith(("triton.compiler", "triton.runtime.errors")):
            return True
        if type(error).__name__ in ("PassManagerError", "CompilationError"):
            return True
        error = error.__cause__ or error.__context__
    return False


def _words(error: BaseException) -> str:
    """Return the error message and its line: the kernel's line that the compiler names, or the submission's last."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith("kernel.py")]
    line = _compiled_line(error) or (lines[-1] if lines else None)
    where = f"kernel.py, line {line}: " if line else ""
    return f"{where}{type(error).__name__}: {error}"[:WORDS]


def _compiled_line(error: BaseException) -> int | None:
    """Return the file's line number of a compilation error; Triton counts from the function's first line."""
    source, node = getattr(error, "src", None), getattr(error, "node", None)
    before, found, _ = Path("kernel.py").read_text().partition(source or chr(0))
    return before.count("\n") + node.lineno if found and node is not None else None


if __name__ == "__main__":
    main()
