"""The capabilities of this machine: compilers, sandbox, clocks, GPU, stores."""

import logging
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path

from kernel_scientist.calibrate import suite
from kernel_scientist.compilers import gxx
from kernel_scientist.evaluation.timing.conditions import Load
from kernel_scientist.gpu.capture import inspect
from kernel_scientist.gpu.toolchains import cuda, hip
from kernel_scientist.hardware import cpu, gpus, measured
from kernel_scientist.profile import profiler, sampling
from kernel_scientist.records import environment
from kernel_scientist.records.capability import Capability
from kernel_scientist.records.errors import SetupError
from kernel_scientist.sandbox import bubblewrap, landlock, seccomp
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.tracking.access import require_usable
from kernel_scientist.workers.native import NativeHarness, WakePriority
from kernel_scientist.workers.worker_pool import native_library

PACKAGES = ("torch", "triton", "prefect", "mlflow", "dvc", "litellm")
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
INSPECTION_S = 60.0
progress = logging.getLogger("kernel_scientist.progress")
WAKE = {
    WakePriority.REAL_TIME: "evaluator and timed workers have real-time priority: other programs hardly disturb them",
    WakePriority.SHORT_SLICE: "the evaluator waits with the shortest time slice; real-time priority is not allowed "
    "(`ulimit -r` of 2 or more would do), so that intervals are wide while other programs run",
    WakePriority.NORMAL: "neither real-time priority nor short time slices (Linux 6.12): times of threaded kernels "
    "may include some 100 us of waiting for a core",
}


def examine() -> list[Capability]:
    """Return the capabilities of this machine.

    It takes some 20 s, so what is looked at is said first.
    """
    rows = list[Capability]()
    for what, look in PARTS.items():
        progress.debug("looking at %s", what)
        rows += look()
    return rows


def _cpu() -> list[Capability]:
    caches = " ".join(f"{level} {size >> 10} KiB" for level, size in cpu.caches().items()) or "caches unknown"
    about = f"{cpu.model()} {cpu.generation()}, {cpu.cores()} cores, {cpu.vector_bytes() * 8}-bit vectors, {caches}"
    peaks, perf = measured.kept(), sampling.find(bubblewrap.bubblewrap_works())
    return [
        _row("cpu", True, about),
        _row("measured peaks", peaks is not None, measured.described(peaks)[0]),
        _required("g++", gxx.version),
        _row("cpu samples", not isinstance(perf, str), perf if isinstance(perf, str) else perf.program),
    ]


def _packages() -> list[Capability]:
    dump = shutil.which("objdump")
    return [
        _row("objdump", dump is not None, dump or "no instruction counts"),
        *(_required(name, partial(metadata.version, name)) for name in PACKAGES),
    ]


def _row(what: str, ok: bool, detail: str, needed: bool = False) -> Capability:
    return Capability(what=what, ok=ok, needed=needed, detail=detail)


def _required(what: str, find: Callable[[], str]) -> Capability:
    """Return the row of a required capability, whose detail `find` returns unless it is missing."""
    try:
        return _row(what, True, find(), needed=True)
    except metadata.PackageNotFoundError:
        return _row(what, False, "not installed: run make install", needed=True)
    except (SetupError, OSError) as error:
        return _row(what, False, str(error), needed=True)


def _store() -> str:
    uri = environment.tracking_uri()
    require_usable(uri)
    return uri


def _sandbox() -> list[Capability]:
    """Return the sandbox layers; `harness.sandbox: auto` uses all that are available."""
    refusal, version = bubblewrap.bubblewrap_refusal(), landlock.version()
    namespaces = "own users, processes, network, mounts; read-only root, private /tmp"
    scopes = f"files{', TCP' if version >= 4 else ''}{', signals' if version >= 6 else ''}"
    return [
        _row("bubblewrap", not refusal, refusal or namespaces),
        _row("landlock", version > 0, f"version {version}: {scopes}" if version else "this system has none"),
        _row("files hidden", not refusal or version > 0, "from kernels, by bubblewrap or landlock", needed=True),
        _row("seccomp", seccomp.supported(), "no new processes, no tracing, no sockets", needed=True),
    ]


def _timing() -> list[Capability]:
    """Return the conditions that affect the quality of timings."""
    load = Load.now().until_now()["load"]
    quiet = os.getloadavg()[0] < 0.5 * cpu.cores()
    fixed = GOVERNOR.exists() and GOVERNOR.read_text().strip() == "performance"
    return [
        _row("quiet machine", quiet, f"load {load} on {cpu.cores()} cores; ratios are measured within one run"),
        _row("fixed clock rate", fixed, "governor performance" if fixed else "unknown: the margin is the A/A noise"),
        *_native(),
    ]


def _native() -> list[Capability]:
    """Return whether the evaluator can stop a worker's threads, and how soon it wakes at the completion signal."""
    try:
        native = NativeHarness(str(native_library()))
        child = subprocess.Popen(["sleep", "5"])
    except (SetupError, OSError) as error:
        return [_row("native harness", False, str(error), needed=True)]
    with child:
        with native.stopped(child.pid, with_main=True) as stopped:
            pass
        child.kill()
    stop = "outputs are read while all threads of the worker are stopped"
    not_allowed = "ptrace is not allowed here: outputs are read while the worker's threads may run"
    return [
        _row("workers stopped", stopped.allowed, stop if stopped.allowed else not_allowed),
        _row("prompt completion", native.wake_priority is not WakePriority.NORMAL, WAKE[native.wake_priority]),
    ]


def _gpu() -> list[Capability]:
    """Return the GPU with its profiler, and the compilers for GPUs that need not be present."""
    import torch

    here, vendor = torch.cuda.is_available(), "rocm" if torch.version.hip else "cuda"
    none = "none: GPU kernels are executed as code for MI300X and checked, not timed"
    tool = profiler.find(vendor) if here else "no GPU"
    amd, nvidia = hip.find(), cuda.find()
    return [
        _row("gpu", here, f"{vendor}: {gpus.name_of('cuda')}" if here else none),
        _row("counters", not isinstance(tool, str), tool if isinstance(tool, str) else tool.program),
        _row("hip compiler", not isinstance(amd, str), amd if isinstance(amd, str) else amd.version),
        _row("cuda compiler", nvidia is not None, nvidia.version if nvidia else "neither nvcc nor NVRTC"),
    ]


def _inspection() -> list[Capability]:
    """Return whether a Triton kernel can be compiled and traced for an absent GPU, as on `model:` targets."""
    gpu, copy = gpus.named("mi300x"), suite.FAMILIES[0]
    try:
        inputs = {copy.name: copy.inputs(copy.sizes[0], gpu)}
        found = inspect.seen(copy.source(copy.settings[0]), inputs, gpu, INSPECTION_S)
    except KernelFailure as failure:
        return [_row("model targets", False, "; ".join((failure.reason, *failure.evidence[-1:])))]
    if not found.answer.launches:
        return [_row("model targets", False, found.answer.failure or "; ".join(found.answer.missed))]
    return [_row("model targets", True, f"inspected a kernel for {gpu.arch} in {found.report.seconds:.1f} s")]


PARTS: dict[str, Callable[[], list[Capability]]] = {
    "the processor and its compiler": _cpu,
    "the sandbox": _sandbox,
    "the conditions of timings": _timing,
    "the packages": _packages,
    "the GPU and the compilers for GPUs": _gpu,
    "the compilation of a Triton kernel for an absent GPU": _inspection,
    "the MLflow store": lambda: [_required("mlflow store", _store)],
}
"""What is examined, in order."""
