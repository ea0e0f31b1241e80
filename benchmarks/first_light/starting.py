"""Steps of first light outside the sandbox: torch sees the GPU, Triton compiles and runs a kernel; the calibration."""

import os
import shutil
import sysconfig
import time
from pathlib import Path

from benchmarks.first_light import surroundings
from benchmarks.first_light.here import Here, imported
from benchmarks.first_light.outcome import Facts, NotHereError, StepError
from kernel_scientist.hardware import gpu

VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "LD_LIBRARY_PATH")
PROPERTIES = ("total_memory", "multi_processor_count", "L2_cache_size", "shared_memory_per_multiprocessor", "uuid")

CALIBRATION_S = 25.0
"""What compiling and timing may take; the rest of the step's time is for the fit."""


def torch_sees_it(here: Here) -> Facts:
    """Torch finds the GPU, computes on it, and has loaded the runtime library that workers bind."""
    yield {**surroundings.facts(), "visible": {name: os.environ.get(name) for name in VISIBLE}}
    import numpy
    import torch
    import triton

    yield {"torch": torch.__version__, "cuda": torch.version.cuda, "hip": torch.version.hip}
    yield {"triton": triton.__version__, "numpy": numpy.__version__, "torch_at": str(Path(torch.__file__).parent)}
    if not here.standin:
        if not torch.cuda.is_available():
            raise StepError(f"a driver's files are in /dev, but torch {torch.__version__} finds no GPU")
        found = torch.cuda.get_device_properties(0)
        yield {"device": found.name, "gpus": torch.cuda.device_count()}
        yield {name: str(value) for name in PROPERTIES if (value := getattr(found, name, None)) is not None}
        yield {"state": gpu.state(), "exclusive": gpu.exclusive()}
        yield {"note": f"{found.name}, torch {torch.__version__}, triton {triton.__version__}"}
    runtime = here.runtime()
    yield {"runtime": getattr(runtime.handle, "_name", ""), "functions": len(runtime.addresses())}
    if int(torch.arange(1 << 20, device=here.device).sum().item()) != (1 << 19) * ((1 << 20) - 1):
        raise StepError("a sum on the device is wrong")


def triton_runs(here: Here) -> Facts:
    """Triton compiles a kernel, which gives the right output."""
    headers = Path(sysconfig.get_path("include"), "Python.h")
    compilers = [name for name in ("gcc", "clang") if shutil.which(name)]
    yield {"python_headers": str(headers) if headers.exists() else "", "compilers_for_launchers": compilers}
    kernel, problem = imported(here.kernel("identity", "triton").source), here.problem("identity")
    data = problem.generate(here.case("identity"), 1)
    import torch

    def seconds() -> float:
        start = time.perf_counter()
        kernel(data)
        if not here.standin:
            torch.cuda.synchronize()
        return round(time.perf_counter() - start, 6)

    yield {"first_call_s": seconds(), "second_call_s": seconds()}
    if not torch.equal(*data):
        raise StepError("the output of the kernel is wrong")


def calibration(here: Here) -> Facts:
    """The performance model is fitted to this GPU, as `kernel-scientist calibrate` does."""
    if here.standin:
        raise NotHereError("the model is fitted to a GPU's times, and the stand-in is none")
    from kernel_scientist.calibrate import history, measure

    found = measure.present()
    if found is None:
        raise StepError("torch finds no GPU")
    if found.platform == "cuda":
        raise NotHereError("NVIDIA's GPUs have no model")
    made = history.calibrate(found, measure.known(found), lambda words: print(words, flush=True), CALIBRATION_S)
    fit = made.fit.model_dump(mode="json")
    yield {key: fit.get(key) for key in ("rho", "error", "families", "constants", "kept")}
    yield {"measured_us": {one.name: one.time_us for one in made.measured}}
    yield {"timed": len(made.measured), "dropped": made.dropped, "calibration_s": made.seconds}
