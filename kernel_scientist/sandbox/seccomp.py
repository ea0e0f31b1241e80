"""Restrictions of a worker: resource limits, no privileges, file access by Landlock, a system-call filter.

A worker restricts itself after its trusted imports and before it reads the kernel. Afterwards it can start threads,
but no processes, cannot open sockets or trace processes, and has limited memory and file sizes. It reaches no other
process: `system_calls` lists what is refused. `bubblewrap` lists the files that it can read, and puts all workers into
namespaces.
"""

import contextlib
import ctypes
import os
import platform
import resource
import struct
from dataclasses import dataclass

from kernel_scientist.sandbox import bubblewrap, landlock, system_calls
from kernel_scientist.sandbox.lifetime import PR_SET_NO_NEW_PRIVS, die_with_parent, prctl

PR_CAPBSET_DROP = 24
CAPABILITY_VERSION_3 = 0x20080522
SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC = 1, 1
RESERVED_BYTES = 1 << 30
"""Extra bytes of address space, which threads and allocators reserve without using them."""
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Limits:
    """Limits of one worker."""

    level: str
    """`harness.sandbox`: auto (everything), basic (files stay readable), none."""
    device: str
    scratch: str
    """Its folder."""
    memory_bytes: int
    """Private writable memory beyond what the worker had when the limit was set."""
    inputs_bytes: int
    """Size of the memory shared with the evaluator."""
    output_bytes: int
    """Largest file that the worker may write, its standard output included."""
    programs: bool
    """Whether the worker may start programs (compilers of GPU kernels) until it is sealed."""
    threads: bool
    """Whether the worker may start threads."""
    readable: tuple[str, ...] = ()
    """Paths that it may read in addition to those of all workers: a profiler's files, under a profiler."""


def supported() -> bool:
    """Whether this system supports the system-call filter of `confine_worker`."""
    known = platform.machine() in system_calls.SECCOMP and platform.system() == "Linux"
    return known and ctypes.sizeof(ctypes.c_void_p) == 8


def confine_worker(limits: Limits) -> tuple[str, ...]:
    """Apply `limits` irrevocably to this process; return the names of the active layers.

    Raises OSError if a layer cannot be applied, so that no worker runs unprotected by accident.
    """
    if limits.level == "none":
        return ()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.output_bytes, limits.output_bytes))
    data = _status_bytes("VmData") + limits.memory_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (data, data))
    if limits.device == "cpu":  # includes shared mappings; a GPU's driver maps more than the memory
        space = _status_bytes("VmSize") + limits.memory_bytes + limits.inputs_bytes + RESERVED_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
    layers = ["rlimits"]
    if limits.level == "auto" and landlock.version():
        readable = (*bubblewrap.visible(limits.device), *limits.readable)
        landlock.restrict(readable, bubblewrap.writable(limits.device, limits.scratch))
        layers.append("landlock")
    layers += drop_capabilities()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    on_gpu = limits.device != "cpu"
    programs = system_calls.OF_PROGRAMS if limits.programs else ()
    _install_filter(system_calls.program(programs, limits.threads, on_gpu, listening=on_gpu))
    return (*layers, "no-new-privs", "seccomp")


def confine_builder(programs: bool) -> None:
    """Confine a process that imports a submission to build it: like a worker, but `confine` limits its files.

    The process ends with its parent. `programs`: whether it may start programs. Raises OSError if this fails.
    """
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    drop_capabilities()
    if supported():
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        _install_filter(system_calls.program(system_calls.OF_PROGRAMS if programs else ()))


def seal(on_gpu: bool) -> None:
    """Forbid this process and all its threads to start programs. Raises OSError if this fails.

    `on_gpu`: as for `confine_worker`.
    """
    if supported():
        _install_filter(system_calls.program(on_gpu=on_gpu), SECCOMP_FILTER_FLAG_TSYNC)


def drop_capabilities() -> list[str]:
    """Drop root's capabilities irrevocably; return the layer's name, or nothing for another user."""
    if os.geteuid() != 0:
        return []
    with contextlib.suppress(OSError):  # number beyond the last capability, or dropping not permitted
        for capability in range(64):
            prctl(PR_CAPBSET_DROP, capability)
    if _libc.capset(struct.pack("<Ii", CAPABILITY_VERSION_3, 0), bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset refused")
    return ["no-capabilities"]


def _status_bytes(name: str) -> int:
    with open("/proc/self/status") as status:
        return next((int(line.split()[1]) << 10 for line in status if line.startswith(f"{name}:")), 0)


def _install_filter(program: bytes, flags: int = 0) -> None:
    """Install a seccomp program. Raises OSError if this fails."""
    code = ctypes.create_string_buffer(program)
    steps = len(program) // system_calls.STEP_BYTES
    header = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", steps, ctypes.addressof(code)))
    call = ctypes.c_long(system_calls.SECCOMP[platform.machine()])
    if _libc.syscall(call, SECCOMP_SET_MODE_FILTER, flags, header) != 0:
        raise OSError(ctypes.get_errno(), "the system refuses the filter of system calls")
