"""What an untrusted worker may do: resource limits, no privileges, files by Landlock, and a filter of system calls.

A worker applies it to itself after its trusted imports and before it reads the kernel. It may start threads but no
processes, opens no sockets, traces nobody, and has limited memory and file sizes. `bubblewrap` lists the files that it
sees, and puts all workers into namespaces.
"""

import contextlib
import ctypes
import os
import platform
import resource
import struct
from dataclasses import dataclass

from kernel_scientist.sandbox import bubblewrap, landlock
from kernel_scientist.sandbox.lifetime import die_with_parent, prctl

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
CAPABILITY_VERSION_3 = 0x20080522
SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC = 1, 1
RESERVED_BYTES = 1 << 30
"""Address space that threads and allocators reserve without using it."""
ALLOW, KILL, EACCES, ENOSYS = 0x7FFF0000, 0x80000000, 0x0005000D, 0x00050026
"""What a filter answers: to do it, to kill the process, or an error number."""
CLONE_THREAD = 0x00010000
X32_CALLS = 0x40000000

_ARCHITECTURES = {"x86_64": (0xC000003E, 317), "aarch64": (0xC00000B7, 277)}
"""By machine: what a filter reads as the architecture, and the number of the call `seccomp`."""
_NUMBERS = {
    "clone": (56, 220), "clone3": (435, 435), "fork": (57, None), "vfork": (58, None), "execve": (59, 221),
    "execveat": (322, 281), "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "perf_event_open": (298, 241), "bpf": (321, 280), "userfaultfd": (323, 282), "keyctl": (250, 219),
    "add_key": (248, 217), "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97), "setns": (308, 268),
    "reboot": (169, 142), "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "io_uring_setup": (425, 425), "socket": (41, 198), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274), "setpriority": (141, 140), "prlimit64": (302, 261),
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "kill": (62, 129), "tkill": (200, 130),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
}  # fmt: skip
"""Numbers of the calls that are not simply allowed, per architecture (Linux: syscall_64.tbl, asm-generic/unistd.h)."""
_REFUSED = (
    *("socket", "io_uring_setup", "kill", "tkill", "pidfd_open", "pidfd_send_signal", "perf_event_open"),
    *("sched_setscheduler", "sched_setparam", "sched_setattr", "shmget", "semget", "msgget", "mq_open"),
)
"""Answered with EACCES, not with death: well-meant libraries probe them, and gain nothing by it."""
_OWN_ONLY = {"prlimit64": 16, "setpriority": 24}
"""Allowed where the argument at this offset is 0, the caller itself."""
_OWN_NUMBER = {"tgkill": 16, "rt_sigqueueinfo": 16, "rt_tgsigqueueinfo": 16}
"""Allowed where the argument at this offset is the caller's number: it may abort, and signal its own threads."""
_PROGRAMS = ("fork", "vfork", "execve", "execveat", "clone", "clone3", "prlimit64", *_OWN_NUMBER)
"""What starting a program and limiting it takes; a program has another number, and may abort."""
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Limits:
    """What one worker may use."""

    level: str
    """`harness.sandbox`: auto (everything), basic (files stay readable), none."""
    device: str
    scratch: str
    """Its folder."""
    memory_bytes: int
    """Private writable memory beyond what the worker had when the limit was set."""
    inputs_bytes: int
    """Size of the memory it shares with the evaluator."""
    output_bytes: int
    """Largest file it may write; its standard output is a file."""
    programs: bool
    """Whether it may start programs until it is sealed: compilers of what a GPU kernel launches."""
    threads: bool
    """Whether it may start threads."""


def supported() -> bool:
    """Whether this system can filter system calls the way `apply` does."""
    known = platform.machine() in _ARCHITECTURES and platform.system() == "Linux"
    return known and ctypes.sizeof(ctypes.c_void_p) == 8


def apply(limits: Limits) -> tuple[str, ...]:
    """Put this process under `limits` for good; return the names of the layers now in force.

    Raises OSError when the system refuses a layer: a worker must not run unprotected by accident.
    """
    if limits.level == "none":
        return ()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.output_bytes, limits.output_bytes))
    data = _status_bytes("VmData") + limits.memory_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (data, data))
    if limits.device == "cpu":  # shared mappings too; a GPU's driver maps more than there is
        space = _status_bytes("VmSize") + limits.memory_bytes + limits.inputs_bytes + RESERVED_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
    layers = ["rlimits"]
    if limits.level == "auto" and landlock.version():
        landlock.restrict(bubblewrap.visible(limits.device), bubblewrap.writable(limits.device, limits.scratch))
        layers.append("landlock")
    layers += _drop_capabilities()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    _install_filter(_PROGRAMS if limits.programs else (), threads=limits.threads)
    return (*layers, "no-new-privs", "seccomp")


def confine_builder(programs: bool) -> None:
    """Confine a process that imports a submission to build it, as a worker is but for files (see `confine`).

    It ends with its parent. With `programs` it may start some. Raises OSError when the system refuses.
    """
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _drop_capabilities()
    if supported():
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        _install_filter(_PROGRAMS if programs else ())


def seal() -> None:
    """Let this process and all its threads start no program any more. Raises OSError when the system refuses."""
    if supported():
        _install_filter(flags=SECCOMP_FILTER_FLAG_TSYNC)


def _drop_capabilities() -> list[str]:
    """Give up root's capabilities for good; return the name of this layer, if it is one."""
    if os.geteuid() != 0:
        return []
    with contextlib.suppress(OSError):  # a number beyond the last capability, or nothing may be dropped
        for capability in range(64):
            prctl(PR_CAPBSET_DROP, capability)
    if _libc.capset(struct.pack("<Ii", CAPABILITY_VERSION_3, 0), bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset refused")
    return ["no-capabilities"]


def _status_bytes(name: str) -> int:
    with open("/proc/self/status") as status:
        return next((int(line.split()[1]) << 10 for line in status if line.startswith(f"{name}:")), 0)


def _install_filter(allowed: tuple[str, ...] = (), threads: bool = True, flags: int = 0) -> None:
    """Install a seccomp program. Forbidden calls kill; probing calls, and new threads unless allowed, are refused."""
    machine = platform.machine()
    column, (architecture, seccomp_call) = list(_ARCHITECTURES).index(machine), _ARCHITECTURES[machine]
    load, jump_equal, jump_from, jump_any, answer = 0x20, 0x15, 0x35, 0x45, 0x06

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("<HBBI", code, yes, no, value)

    def only_if(offset: int, value: int) -> list[bytes]:
        return [step(load, offset), step(jump_equal, value, no=1), step(answer, ALLOW), step(answer, EACCES)]

    thread = step(answer, ALLOW if threads else EACCES)
    rules = {
        **{name: [step(answer, EACCES if name in _REFUSED else KILL)] for name in _NUMBERS},
        **{name: only_if(offset, 0) for name, offset in _OWN_ONLY.items()},
        **{name: only_if(offset, os.getpid()) for name, offset in _OWN_NUMBER.items()},
        "clone": [step(load, 16), step(jump_any, CLONE_THREAD, no=1), thread, step(answer, KILL)],
        "clone3": [step(answer, ENOSYS)],  # its flags lie behind a pointer; glibc falls back to clone
    }
    program = [step(load, 4), step(jump_equal, architecture, yes=1), step(answer, KILL), step(load, 0)]
    if machine == "x86_64":  # the x32 calls share the architecture's value
        program += [step(jump_from, X32_CALLS, no=1), step(answer, KILL)]
    for name, steps in rules.items():
        number = _NUMBERS[name][column]
        if number is not None and name not in allowed:
            program += [step(jump_equal, number, no=len(steps)), *steps]
    program.append(step(answer, ALLOW))

    code = ctypes.create_string_buffer(b"".join(program))
    header = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(code)))
    if _libc.syscall(ctypes.c_long(seccomp_call), SECCOMP_SET_MODE_FILTER, flags, header) != 0:
        raise OSError(ctypes.get_errno(), "the system refuses the filter of system calls")
