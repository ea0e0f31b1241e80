"""Restrictions of a worker: resource limits, no privileges, file access by Landlock, a system-call filter.

A worker restricts itself after its trusted imports and before it reads the kernel. Afterwards it can start threads,
but no processes, cannot open sockets or trace processes, and has limited memory and file sizes. `bubblewrap` lists the
files that it can read, and puts all workers into namespaces.
"""

import contextlib
import ctypes
import os
import platform
import resource
import struct
from dataclasses import dataclass

from kernel_scientist.sandbox import bubblewrap, landlock
from kernel_scientist.sandbox.lifetime import PR_SET_NO_NEW_PRIVS, die_with_parent, prctl

PR_CAPBSET_DROP = 24
CAPABILITY_VERSION_3 = 0x20080522
SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC = 1, 1
RESERVED_BYTES = 1 << 30
"""Extra bytes of address space, which threads and allocators reserve without using them."""
ALLOW, KILL, EACCES, ENOSYS = 0x7FFF0000, 0x80000000, 0x0005000D, 0x00050026
"""Results of a filter: allow the call, kill the process, or fail with an error number."""
CLONE_THREAD = 0x00010000
X32_CALLS = 0x40000000

_ARCHITECTURES = {"x86_64": (0xC000003E, 317), "aarch64": (0xC00000B7, 277)}
"""By machine: the architecture's value in a filter, and the number of the system call `seccomp`."""
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
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "connect": (42, 203),
    "accept": (43, 202), "accept4": (288, 242),
}  # fmt: skip
"""Numbers of the restricted system calls per architecture (Linux: syscall_64.tbl, asm-generic/unistd.h)."""
_REFUSED = (
    *("socket", "io_uring_setup", "kill", "tkill", "pidfd_open", "pidfd_send_signal", "perf_event_open"),
    *("sched_setscheduler", "sched_setparam", "sched_setattr", "shmget", "semget", "msgget", "mq_open"),
    *("connect", "accept", "accept4"),
)
"""Calls that fail with EACCES instead of killing the process, because ordinary libraries probe them."""
AF_UNIX, SOCK_SEQPACKET, SOCKET_TYPES = 1, 5, 0xF
"""The only socket that a GPU's worker may open, until it is sealed; the bits of a socket's type. CUDA's driver binds
one to a name of its own, to hand memory to other processes, and does not start without it (error 304). As `connect` and
`accept` are refused, nothing is sent through it."""
_OWN_ONLY = {"prlimit64": 16, "setpriority": 24}
"""Calls that are allowed if the argument at this offset is 0, which means the caller."""
_OWN_NUMBER = {"tgkill": 16, "rt_sigqueueinfo": 16, "rt_tgsigqueueinfo": 16}
"""Calls that are allowed if the argument at this offset is the caller's number: abort, signals to own threads."""
_PROGRAMS = ("fork", "vfork", "execve", "execveat", "clone", "clone3", "prlimit64", *_OWN_NUMBER)
"""Calls needed to start and limit a program (which must be able to abort under its own number)."""
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
    known = platform.machine() in _ARCHITECTURES and platform.system() == "Linux"
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
    layers += _drop_capabilities()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    on_gpu = limits.device != "cpu"
    _install_filter(_PROGRAMS if limits.programs else (), threads=limits.threads, listening=on_gpu)
    return (*layers, "no-new-privs", "seccomp")


def confine_builder(programs: bool) -> None:
    """Confine a process that imports a submission to build it: like a worker, but `confine` limits its files.

    The process ends with its parent. `programs`: whether it may start programs. Raises OSError if this fails.
    """
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _drop_capabilities()
    if supported():
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        _install_filter(_PROGRAMS if programs else ())


def seal() -> None:
    """Forbid this process and all its threads to start programs. Raises OSError if this fails."""
    if supported():
        _install_filter(flags=SECCOMP_FILTER_FLAG_TSYNC)


def _drop_capabilities() -> list[str]:
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


def _install_filter(
    allowed: tuple[str, ...] = (), threads: bool = True, listening: bool = False, flags: int = 0
) -> None:
    """Install a seccomp program. Forbidden calls kill the process; probing calls and unwanted threads get an error.

    `listening`: whether the socket of CUDA's driver may be opened.
    """
    machine = platform.machine()
    column, (architecture, seccomp_call) = list(_ARCHITECTURES).index(machine), _ARCHITECTURES[machine]
    load, keep_bits, jump_equal, jump_from, jump_any, answer = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("<HBBI", code, yes, no, value)

    def only_if(offset: int, value: int) -> list[bytes]:
        return [step(load, offset), step(jump_equal, value, no=1), step(answer, ALLOW), step(answer, EACCES)]

    thread = step(answer, ALLOW if threads else EACCES)
    of_cuda = [step(load, 16), step(jump_equal, AF_UNIX, no=3), step(load, 24), step(keep_bits, SOCKET_TYPES)]
    of_cuda += [step(jump_equal, SOCK_SEQPACKET, yes=1), step(answer, EACCES), step(answer, ALLOW)]
    rules = {
        **{name: [step(answer, EACCES if name in _REFUSED else KILL)] for name in _NUMBERS},
        **{name: only_if(offset, 0) for name, offset in _OWN_ONLY.items()},
        **{name: only_if(offset, os.getpid()) for name, offset in _OWN_NUMBER.items()},
        **({"socket": of_cuda} if listening else {}),
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
