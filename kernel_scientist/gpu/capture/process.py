"""The process that imports a submission and records what it compiles: `python -m kernel_scientist.gpu.capture.process`.
`sandbox.forked` starts it, by a fork of a process that has imported this module.

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
from pathlib import Path
from typing import Any

from triton.runtime import cache

from kernel_scientist.compilers import gpumode_compat
from kernel_scientist.gpu.capture import large_tensors, whole_file
from kernel_scientist.gpu.capture.launch_counter import LaunchCounter
from kernel_scientist.gpu.capture.launches import LaunchRecorder, TorchRecorder
from kernel_scientist.gpu.capture.reply import WORDS, InspectionProgress, is_compilation, words
from kernel_scientist.gpu.fake import preloaded, recorded_builds
from kernel_scientist.gpu.fake.device import pretended
from kernel_scientist.gpu.fake.facts import Facts
from kernel_scientist.gpu.machine import library
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.hardware import gpus
from kernel_scientist.sandbox import seccomp

preloaded.load("scipy.sparse.csgraph")  # which finds loops


def main() -> None:
    """Handle the request and write the reply."""
    os.environ |= {"TRITON_CACHE_DIR": str(Path("cache").resolve()), "HOME": str(Path.cwd())}
    os.environ["TORCH_COMPILE_DISABLE"] = "1"  # it would ask torch's libraries for the device
    cache.triton_key = lambda: ""  # the cache is this process's own, and the digest of Triton's files takes 0.3 s
    gc.freeze()
    request: dict[str, Any] = json.loads(Path("request.json").read_text())
    recorder = LaunchRecorder(
        facts=Facts(**request["facts"]),
        counter=_counter(request),
        counts=request["counts"],
        constants=Constants(**request["constants"]),
        deadline=time.monotonic() + request["seconds"],
    )
    recorder.install()
    seccomp.confine_builder(programs=not recorder.facts.amd)  # Triton starts NVIDIA's assembler as a program
    with pretended(recorder.facts), recorded_builds.captured() as builds:
        reply = InspectionProgress(recorder, builds)
        Path("begun").touch()
        if request["file"] is not None:
            whole_file.inspected(request, recorder, reply)
        else:
            _submission(request, recorder, reply)
        reply.write()


def _counter(request: dict[str, Any]) -> LaunchCounter | None:
    """Return what counts launches; None for a GPU whose code the machine does not execute."""
    if not request["machine"]:
        return None
    return LaunchCounter(
        library.loaded(Path(request["machine"])), Facts(**request["facts"]), gpus.named(request["gpu"])
    )


def _submission(request: dict[str, Any], recorder: LaunchRecorder, reply: InspectionProgress) -> None:
    """Call the submission's `custom_kernel` on every case, and compile its kernels alone if asked to."""
    try:
        kernel = _imported(request["modules"])
    except Exception as error:
        reply.failure = words(error)
        return
    if request["alone"]:
        reply.keep(sys.modules["kernel"])
    for case in request["cases"]:
        data = large_tensors.made(case["data"])
        recorder.begin(case["name"], data)
        if time.monotonic() > recorder.deadline:
            recorder.missed.append(f"{recorder.case}: the time allowed for inspection was over")
            recorder.timed_out = True
            continue
        try:
            with TorchRecorder(recorder):
                kernel(gpumode_compat.with_objects(data))
        except Exception as error:
            if is_compilation(error):
                reply.failure, reply.refused = words(error), True
                break
            recorder.missed.append(f"{recorder.case}: {words(error)}"[:WORDS])


def _imported(files: dict[str, str]) -> Any:
    spec = importlib.util.spec_from_file_location("kernel", Path("kernel.py").resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel"] = module
    gpumode_compat.provide(files)
    spec.loader.exec_module(module)
    return module.custom_kernel


if __name__ == "__main__":
    main()
