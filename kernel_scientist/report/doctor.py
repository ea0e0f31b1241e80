"""The capabilities of this machine: compilers, sandbox, clocks, GPU, stores."""

import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from kernel_scientist.compile import gxx
from kernel_scientist.evaluate.timing.conditions import Load
from kernel_scientist.hardware import cpu
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.sandbox import bubblewrap, landlock, seccomp
from kernel_scientist.workers import native_build
from kernel_scientist.workers.native import NativeHarness, WakePriority


def examine() -> list[dict[str, Any]]:
    """Return one row per capability: name, whether it is available, whether it is required, detail."""
    rows = [_row("cpu", True, f"{cpu.model()}, {cpu.cores()} cores, {cpu.vector_bytes() * 8}-bit vectors, {_caches()}")]
    try:
        gxx.find()
        rows.append(_row("g++", True, gxx.version(), needed=True))
    except SetupError as error:
        rows.append(_row("g++", False, str(error), needed=True))
    rows += _sandbox() + _timing()
    rows.append(
        _row("objdump", shutil.which("objdump") is not None, shutil.which("objdump") or "no instruction counts")
    )
    rows += [_package(name) for name in ("torch", "triton", "prefect", "mlflow", "dvc", "litellm")]
    rows += [_gpu(), _profiler(), *_compilers()]
    uri = environment.tracking_uri()
    try:
        from kernel_scientist.tracking.access import require_reachable

        require_reachable(uri)
        rows.append(_row("mlflow store", True, uri, needed=True))
    except SetupError as error:
        rows.append(_row("mlflow store", False, str(error), needed=True))
    return rows


def _row(what: str, ok: bool, detail: str, needed: bool = False) -> dict[str, Any]:
    return {"what": what, "ok": ok, "needed": needed, "detail": detail}


def _sandbox() -> list[dict[str, Any]]:
    """Return the sandbox layers; `harness.sandbox: auto` uses all that are available."""
    works, landlock_version = bubblewrap.bubblewrap_works(), landlock.version()
    installed = shutil.which("bwrap") is not None
    missing = "this system allows it no namespaces" if installed else "not installed: apt-get install bubblewrap"
    namespaces = "own users, processes, network, mounts; read-only root, private /tmp"
    scopes = f"files{', TCP' if landlock_version >= 4 else ''}{', signals' if landlock_version >= 6 else ''}"
    user = "workers give up root" if os.geteuid() == 0 else "workers run as this user"
    return [
        _row("bubblewrap", works, namespaces if works else missing),
        _row("landlock", landlock_version > 0, f"version {landlock_version}: {scopes}" if landlock_version else "no"),
        _row("files hidden", works or landlock_version > 0, "from kernels, by bubblewrap or landlock", needed=True),
        _row("seccomp", seccomp.supported(), "no new processes, no tracing, no sockets", needed=True),
        _row("limits", True, "memory, file size and output by rlimits; a process group is killed as a whole"),
        _row("another user", os.geteuid() == 0 or works, "nobody, in a user namespace" if works else user),
    ]


def _timing() -> list[dict[str, Any]]:
    """Return what the quality of timings depends on."""
    load = Load.now().until_now().get("load", "unknown")
    quiet = os.getloadavg()[0] < 0.5 * cpu.cores()
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    fixed = governor.exists() and governor.read_text().strip() == "performance"
    return [
        _row("quiet machine", quiet, f"load {load} on {cpu.cores()} cores; ratios are measured within one run"),
        _row("fixed clock rate", fixed, "governor performance" if fixed else "unknown: the margin is the A/A noise"),
        _row("one timing at a time", True, "one lock per device, shared by all processes of this host"),
        *_native(),
    ]


def _native() -> list[dict[str, Any]]:
    """Return whether the evaluator can stop a worker's threads, and how soon it wakes at the completion signal."""
    try:
        native = NativeHarness(str(native_build.build()))
        child = subprocess.Popen(["sleep", "5"])
    except (SetupError, OSError) as error:
        return [_row("native harness", False, str(error), needed=True)]
    with child:
        with native.stopped(child.pid, with_main=True) as allowed:
            pass
        child.kill()
    wake = {
        WakePriority.REAL_TIME: "the evaluator waits with real-time priority",
        WakePriority.SHORT_SLICE: "the evaluator waits with the shortest time slice; real-time priority is not allowed",
        WakePriority.NORMAL: "neither real-time priority nor short time slices (Linux 6.12): times of threaded kernels "
        "may include some 100 us of waiting for a core",
    }[native.wake_priority]
    stop = "outputs are read while all threads of the worker are stopped"
    not_allowed = "ptrace is not allowed here: outputs are read while the worker's threads may run"
    return [
        _row("workers stopped", allowed, stop if allowed else not_allowed),
        _row("prompt completion", native.wake_priority is not WakePriority.NORMAL, wake),
    ]


def _caches() -> str:
    return " ".join(f"{level} {size >> 10} KiB" for level, size in cpu.caches().items()) or "caches unknown"


def _package(name: str) -> dict[str, Any]:
    try:
        return _row(name, True, metadata.version(name), needed=True)
    except metadata.PackageNotFoundError:
        return _row(name, False, "not installed: run make install", needed=True)


def _compilers() -> list[dict[str, Any]]:
    """Return the compilers for GPUs that need not be present."""
    from kernel_scientist.gpu.toolchains import cuda, rocm

    tools, nvidia = rocm.find(), cuda.find()
    return [
        _row("triton for GPUs", True, "gfx942, gfx950 and sm_90, without a GPU"),
        _row("hip compiler", not isinstance(tools, str), tools if isinstance(tools, str) else tools.version),
        _row("cuda compiler", nvidia is not None, nvidia.version if nvidia else "neither nvcc nor NVRTC"),
    ]


def _profiler() -> dict[str, Any]:
    """Return the profiler that reads the GPU's hardware counters."""
    import torch

    from kernel_scientist.profile import profiler

    if not torch.cuda.is_available():
        return _row("counters", False, "no GPU")
    tool = profiler.find("rocm" if torch.version.hip else "cuda")
    return _row("counters", not isinstance(tool, str), tool if isinstance(tool, str) else tool.program)


def _gpu() -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        return _row("gpu", False, "none: Triton kernels are checked in the interpreter, not timed")
    kind = "rocm" if torch.version.hip else "cuda"
    return _row("gpu", True, f"{kind}: {torch.cuda.get_device_name(0)}")
