"""What this machine can do."""

import os
import platform
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
from kernel_scientist.workers.native import Hearing, NativeHarness


def examine() -> list[dict[str, Any]]:
    """Return one row per ability: what, ok, whether it is needed, detail."""
    rows = [_row("cpu", True, f"{cpu.model()}, {cpu.cores()} cores, {cpu.vector_bytes() * 8}-bit vectors, {_caches()}")]
    try:
        gxx.find()
        rows.append(_row("g++", True, gxx.version(), needed=True))
    except SetupError as error:
        rows.append(_row("g++", False, str(error), needed=True))
    rows += _sandbox() + _clocks()
    rows.append(
        _row("objdump", shutil.which("objdump") is not None, shutil.which("objdump") or "no instruction counts")
    )
    rows += [_package(name) for name in ("torch", "triton", "prefect", "mlflow", "dvc", "litellm")]
    rows += [_gpu(), _profiler(), *_compilers()]
    uri = environment.tracking_uri()
    try:
        from kernel_scientist.tracking.mlflow_store import reach

        reach(uri)
        rows.append(_row("mlflow store", True, uri, needed=True))
    except SetupError as error:
        rows.append(_row("mlflow store", False, str(error), needed=True))
    return rows


def _row(what: str, ok: bool, detail: str, needed: bool = False) -> dict[str, Any]:
    return {"what": what, "ok": ok, "needed": needed, "detail": detail}


def _sandbox() -> list[dict[str, Any]]:
    """What keeps a kernel from the machine; harness.sandbox=auto takes all of it."""
    works, landlocked = bubblewrap.bubblewrap_works(), landlock.version()
    installed = shutil.which("bwrap") is not None
    without = "this system lets it make no namespaces" if installed else "not installed: apt-get install bubblewrap"
    spaces = "own users, processes, network, mounts; read-only root, private /tmp"
    files = f"version {landlocked}: files{', TCP' if landlocked >= 4 else ''}{', signals' if landlocked >= 6 else ''}"
    user = "workers leave root" if os.geteuid() == 0 else "workers have this user's identity, without its files"
    return [
        _row("bubblewrap", works, spaces if works else without),
        _row("landlock", landlocked > 0, files if landlocked else "not in this kernel"),
        _row("files kept from kernels", works or landlocked > 0, "by the two above", needed=True),
        _row("seccomp", seccomp.supported(), "no new process, no tracing, no sockets", needed=True),
        _row("limits", True, "memory, file size and output by rlimits; a group of processes is killed as a whole"),
        _row("another user", os.geteuid() == 0 or works, user if not works else "nobody, in a namespace of users"),
    ]


def _clocks() -> list[dict[str, Any]]:
    """What a time rests on."""
    flags = cpu.features()
    steady = platform.machine() == "aarch64" or {"constant_tsc", "nonstop_tsc"} <= flags
    lost = {k: v for k, v in Load.now().until_now().items() if k in ("load", "steal_percent")}
    quiet = os.getloadavg()[0] < 0.5 * cpu.cores()
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    fixed = governor.exists() and governor.read_text().strip() == "performance"
    return [
        _row(
            "processor's counter", steady, "a second clock that software cannot slow down" if steady else "not steady"
        ),
        _row("quiet machine", quiet, f"load {lost['load']} on {cpu.cores()} cores; timings are ratios in one run"),
        _row(
            "fixed clock rate", fixed, "governor performance" if fixed else "not told or not fixed: A/A noise decides"
        ),
        _row("one timing at a time", True, "a lock per device that all processes of this host share"),
        _glimpse(),
        _urgent(),
    ]


def _glimpse() -> dict[str, Any]:
    """Whether the verifier may read in a worker's memory the moment that a call has ended."""
    try:
        native = NativeHarness(str(native_build.native()))
        child = subprocess.Popen(["sleep", "5"])
    except (SetupError, OSError) as error:
        return _row("outputs seen at once", False, str(error))
    with child:
        seen = native.can_peek(child.pid)
        child.kill()
    told = "pieces are read out of the worker's memory when a call has ended"
    return _row("outputs seen at once", seen, told if seen else "not allowed here: its digest is on the clock instead")


def _urgent() -> dict[str, Any]:
    """Whether the verifier hears at once that a call has ended, whatever a kernel's threads do."""
    name = "calls' ends heard at once"
    try:
        hearing = NativeHarness(str(native_build.native())).hearing
    except SetupError as error:
        return _row(name, False, str(error))
    told = {
        Hearing.FIRST: "while it listens the verifier has real-time priority",
        Hearing.SOON: "while it listens the verifier has the shortest time slice; real-time priority is not allowed",
        Hearing.IN_TURN: "neither real-time priority nor short time slices (Linux 6.12) here: up to some 100 us more "
        "may pass uncharged beside a call of a threaded reference",
    }
    return _row(name, hearing is not Hearing.IN_TURN, told[hearing])


def _caches() -> str:
    return " ".join(f"{level} {size >> 10} KiB" for level, size in cpu.caches().items()) or "caches not told"


def _package(name: str) -> dict[str, Any]:
    try:
        return _row(name, True, metadata.version(name), needed=True)
    except metadata.PackageNotFoundError:
        return _row(name, False, "not installed: run make install", needed=True)


def _compilers() -> list[dict[str, Any]]:
    """What compiles kernels for GPUs that are not here."""
    from kernel_scientist.gpu.toolchains import cuda, rocm

    tools, nvidia = rocm.find(), cuda.find()
    without = isinstance(tools, str)
    return [
        _row("triton for GPUs", True, "gfx942, gfx950 and sm_90, without a GPU"),
        _row("hip compiler", not without, tools if isinstance(tools, str) else tools.version),
        _row("cuda compiler", nvidia is not None, nvidia.version if nvidia else "neither nvcc nor NVRTC"),
    ]


def _profiler() -> dict[str, Any]:
    """What reads a GPU's own counters."""
    import torch

    from kernel_scientist.profile import profiler

    if not torch.cuda.is_available():
        return _row("counters", False, "no GPU to count on")
    tool = profiler.find("rocm" if torch.version.hip else "cuda")
    return _row("counters", not isinstance(tool, str), tool if isinstance(tool, str) else tool.program)


def _gpu() -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        return _row("gpu", False, "none: Triton kernels are checked by its interpreter, not timed")
    kind = "rocm" if torch.version.hip else "cuda"
    return _row("gpu", True, f"{kind}: {torch.cuda.get_device_name(0)}")
