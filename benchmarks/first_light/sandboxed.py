"""Steps of first light in the sandbox: a Triton kernel, an extension, and the limits of a worker."""

import json
import os
import time
from dataclasses import replace

from benchmarks.first_light import layers
from benchmarks.first_light.here import Here
from benchmarks.first_light.outcome import Facts, StepError
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.sandbox import bubblewrap, landlock
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers import client
from kernel_scientist.workers.worker_pool import WorkerPool

COPY_S, START_S = 10.0, 20
"""Limits of copying outputs and of a worker's start while the layer that refuses is looked for, in seconds."""
ON_DEVICE = r"""
__global__ void copy_kernel(const unsigned short* x, unsigned short* out, long size) {
    long i = (long)blockIdx.x * 256 + threadIdx.x;
    if (i < size) out[i] = x[i];
}

void copy(torch::Tensor x, torch::Tensor out) {
    long size = x.numel();
    copy_kernel<<<dim3((size + 255) / 256), dim3(256)>>>(
        (const unsigned short*)x.data_ptr(), (unsigned short*)out.data_ptr(), size);
}
"""
ON_HOST = r"""
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <cstring>

void copy(at::Tensor x, at::Tensor out) { std::memcpy(out.data_ptr(), x.data_ptr(), x.nbytes()); }
"""
EXTENSION = """
from torch.utils.cpp_extension import load_inline

module = load_inline("first_light", functions=["copy"], {arguments})


def custom_kernel(data):
    x, out = data
    module.copy(x, out)
    return out
"""
STATUS = """
import json
import mmap
import resource
import torch

NAMES = ("VmPeak", "VmSize", "VmData", "VmHWM", "VmRSS", "Threads")


def tried(work):
    try:
        work()
    except (RuntimeError, OSError) as error:
        return f"{{type(error).__name__}}: {{error}}"[:200]
    return "allowed"


def custom_kernel(data):
    x, out = data
    out.copy_(x)
    with open("/proc/self/status") as lines:
        status = dict(line.strip().split(":", 1) for line in lines)
    found = {{name: status[name].strip() for name in NAMES}}
    for name in ("RLIMIT_AS", "RLIMIT_DATA"):
        found[name] = resource.getrlimit(getattr(resource, name))[0]
    if {on_gpu}:
        found["device_2_gib"] = tried(lambda: torch.empty(2 << 30, dtype=torch.uint8, device=x.device))
        found["pinned_64_mib"] = tried(lambda: torch.empty(64 << 20, dtype=torch.uint8, pin_memory=True))
    found["host_beyond_limit"] = tried(lambda: mmap.mmap(-1, {most}, flags=mmap.MAP_PRIVATE).close())
    print(json.dumps(found), flush=True)
    return out
"""


def worker_runs(here: Here) -> Facts:
    """A Triton kernel compiles and runs in the sandbox; if not, the layer that refuses is found by leaving each out."""
    yield from refusing(here, here.kernel("identity", "triton").source)


def refusing(here: Here, source: str) -> Facts:
    """Run a kernel in the sandbox. Raises StepError with the layer that refuses something, if there is one."""
    yield {"bubblewrap": bubblewrap.bubblewrap_works(), "landlock_version": landlock.version()}
    client.TRANSFER_TIMEOUT_S = COPY_S  # a driver that waits for a stopped thread is to be found in time
    client.START_TIMEOUT_S = START_S
    refusal = ""
    for layer in dict.fromkeys((here.without, layers.EVERY, *layers.LAYERS)):
        start = time.perf_counter()
        try:
            with replace(here, without=layer).pool() as pool:
                _run(here, pool, source)
                yield {"level": pool.harness.sandbox, "layers": pool.layers, "threads_can_be_stopped": pool.can_stop}
        except (KernelFailure, InfrastructureError) as error:
            refusal = refusal or _words(error)
            yield {f"without {layer}" if layer else "with every layer": _words(error)}
            if layer == layers.EVERY:
                raise StepError(f"it does not run without any sandbox either: {refusal}") from error
            continue
        yield {"start_and_call_s": round(time.perf_counter() - start, 2), "without": layer}
        if refusal and layer == layers.EVERY:  # so the sandbox refuses something: which layer?
            continue
        yield {"note": ", ".join(pool.layers)}
        if refusal:
            raise StepError(f"it runs only without {layer!r}: {refusal}")
        if not bubblewrap.bubblewrap_works() and not landlock.version():
            raise StepError("it runs, but neither bubblewrap nor Landlock hides files from it")
        return
    raise StepError(f"it runs only without {layers.EVERY!r}: no single layer is the one that refuses: {refusal}")


def extension_runs(here: Here) -> Facts:
    """An extension in CUDA or HIP is built by `load_inline` and runs in the sandbox; on the stand-in one in C++."""
    if here.standin:
        arguments = f"cpp_sources=r'''{ON_HOST}''', no_implicit_headers=True"
    else:
        declared = "void copy(torch::Tensor x, torch::Tensor out);"
        arguments = f"cpp_sources='{declared}', cuda_sources=r'''{ON_DEVICE}'''"
    start = time.perf_counter()
    with here.pool() as pool:
        _run(here, pool, EXTENSION.replace("{arguments}", arguments))
        yield {"layers": pool.layers, "build_and_call_s": round(time.perf_counter() - start, 2)}


def limits_hold(here: Here) -> Facts:
    """A worker has room for the driver's reservations, and none beyond its limit of memory."""
    with here.pool() as pool:
        most = 2 * pool.harness.memory_mib << 20
        found = json.loads(_run(here, pool, STATUS.format(on_gpu=not here.standin, most=most)))
        yield found
        allowed = {name: found[name] for name in ("device_2_gib", "pinned_64_mib") if name in found}
        if any(words != "allowed" for words in allowed.values()):
            raise StepError(f"a GPU's memory is refused: {allowed}")
        if found["host_beyond_limit"] == "allowed" and pool.harness.sandbox != "none":
            raise StepError("a worker can have more memory than harness.memory_mib")


def _run(here: Here, pool: WorkerPool, source: str) -> str:
    """Load a kernel in a worker, call it once, verify its output; return the last line that it printed."""
    problem, case = here.problem("identity"), here.problem("identity").profile("auto").tests[0]
    driver = Driver(problem, pool.harness, pool)
    with pool.worker() as worker:
        driver.load(worker, source, [case])
        inputs = driver.inputs.draw(case)
        _, outputs = driver.row(worker, {0: inputs})
        driver.verify([inputs], outputs)
        printed = os.pread(worker.log, 1 << 16, 0).decode(errors="replace").strip()
    return printed.rpartition("\n")[2]


def _words(error: Exception) -> str:
    evidence: tuple[str, ...] = getattr(error, "evidence", ())
    return " | ".join((str(error) or type(error).__name__, *evidence))[-1500:]
