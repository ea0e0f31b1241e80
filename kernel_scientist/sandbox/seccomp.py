"""What an untrusted worker may do: resource limits, no new privileges, a system-call filter, death with its parent.

Applied by the worker to itself after its trusted imports and before it sees the kernel. Covers: processes (a worker
may start threads, never another process), the network, tracing and kernel interfaces, memory, file sizes, and by
Landlock the files it sees. `bubblewrap` lists these, and puts all workers into namespaces.
"""

import contextlib
import ctypes
import os
import platform
import resource
import signal
import struct
from dataclasses import dataclass, fields
from typing import Any

from kernel_scientist.sandbox import bubblewrap, landlock

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
PR_SET_CHILD_SUBREAPER, PR_SET_TIMERSLACK = 36, 29
SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}
SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC = 1, 1
CAPABILITY_VERSION_3 = 0x20080522
NOBODY, FIRST_USER, USERS = 65534, 60_600, 400
"""Users that workers are where the evaluator runs as root, in no namespace: each another one, of numbers that neither
Debian nor systemd gives to anybody; `nobody` where a container knows no such numbers."""
RESERVED_BYTES = 1 << 30
"""Address space that threads and allocators reserve without using it."""
SECCOMP_MODE_FILTER = 2
ALLOW, KILL_PROCESS = 0x7FFF0000, 0x80000000
ERRNO_EACCES, ERRNO_ENOSYS = 0x0005000D, 0x00050026
CLONE_THREAD = 0x00010000

# Number of each system call per architecture (Linux: arch/x86/entry/syscalls/syscall_64.tbl, asm-generic/unistd.h).
_ARCHES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (0xC000003E, {
        "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "clone3": 435, "ptrace": 101, "socket": 41,
        "process_vm_readv": 310, "process_vm_writev": 311, "perf_event_open": 298, "bpf": 321, "userfaultfd": 323,
        "keyctl": 250, "add_key": 248, "mount": 165, "umount2": 166, "unshare": 272, "setns": 308, "reboot": 169,
        "kexec_load": 246, "init_module": 175, "finit_module": 313, "delete_module": 176, "io_uring_setup": 425,
        "sched_setscheduler": 144, "sched_setparam": 142, "sched_setattr": 314, "setpriority": 141, "prlimit64": 302,
        "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
        "tgkill": 234, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297,
        "kill": 62, "tkill": 200, "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438,
    }),
    "aarch64": (0xC00000B7, {
        "clone": 220, "execve": 221, "execveat": 281, "clone3": 435, "ptrace": 117, "socket": 198,
        "process_vm_readv": 270, "process_vm_writev": 271, "perf_event_open": 241, "bpf": 280, "userfaultfd": 282,
        "keyctl": 219, "add_key": 217, "mount": 40, "umount2": 39, "unshare": 97, "setns": 268, "reboot": 142,
        "kexec_load": 104, "init_module": 105, "finit_module": 273, "delete_module": 106, "io_uring_setup": 425,
        "sched_setscheduler": 119, "sched_setparam": 118, "sched_setattr": 274, "setpriority": 140, "prlimit64": 261,
        "shmget": 194, "semget": 190, "msgget": 186, "mq_open": 180,
        "tgkill": 131, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240,
        "kill": 129, "tkill": 130, "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438,
    }),
}  # fmt: skip
_libc = ctypes.CDLL(None, use_errno=True)
_REFUSED = (
    *("socket", "io_uring_setup", "kill", "tkill", "pidfd_open", "pidfd_send_signal", "perf_event_open"),
    *("sched_setscheduler", "sched_setparam", "sched_setattr"),
    *("shmget", "semget", "msgget", "mq_open"),
)
"""Answered with EACCES rather than death: well-meant libraries probe them, and they gain nothing."""


_OWN_ONLY = {"prlimit64": 16, "setpriority": 24}
"""Allowed where the argument at this offset is 0, the caller itself: its limits are its own affair, others' are not."""
_OWN_NUMBER = {"tgkill": 16, "rt_sigqueueinfo": 16, "rt_tgsigqueueinfo": 16}
"""Allowed where the argument at this offset is the caller's number: `abort` and threads' signals are its own affair."""


@dataclass(frozen=True)
class Limits:
    """What one worker may use."""

    level: str
    """`harness.sandbox`: auto (everything), basic (files stay readable), none."""
    enclosure: str
    """What surrounds all workers already: bubblewrap, or nothing."""
    device: str
    scratch: str
    memory_bytes: int
    """Private writable memory beyond what the worker had when the limit was set."""
    inputs_bytes: int
    """Size of the memory it shares with the evaluator."""
    output_bytes: int
    """Largest file it may write; its standard output is a file."""
    other_user: int
    """The user to become, where the evaluator runs as root, in no namespace; 0: none."""
    programs: bool
    """Whether it may start programs until it is sealed: compilers of what a GPU kernel launches."""
    threads: bool
    """Whether it may start threads."""

    @staticmethod
    def of(settings: dict[str, Any]) -> "Limits":
        """Return the limits among a worker's settings."""
        return Limits(**{field.name: settings[field.name] for field in fields(Limits)})


_PROGRAMS = ("fork", "vfork", "execve", "execveat", "clone", "clone3", "prlimit64", *_OWN_NUMBER)
"""What starting a program and limiting it takes; a program has another number, and may abort."""


def confine_builder(programs: bool) -> None:
    """Put a process that imports a submission to build it under what workers are under, but for files (`confine`):
    no capability, the filter of system calls, an end with its parent's. With `programs` it may still start some.

    Raises OSError when the system refuses.
    """
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if os.geteuid() == 0:
        _leave_root(other_user=0)
    if supported():
        _prctl(PR_SET_NO_NEW_PRIVS, 1)
        _install_filter(_PROGRAMS if programs else ())


def seal() -> None:
    """Let this process and all its threads start no program any more. Raises OSError when the system refuses."""
    if supported():
        _install_filter(all_threads=True)


def supported() -> bool:
    """Whether this system can filter system calls the way `apply` does."""
    return platform.machine() in _ARCHES and platform.system() == "Linux" and ctypes.sizeof(ctypes.c_void_p) == 8


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
    layers = ([limits.enclosure] if limits.enclosure else []) + ["rlimits"]
    if limits.level == "auto" and landlock.version():
        landlock.restrict(bubblewrap.visible(limits.device), bubblewrap.writable(limits.device, limits.scratch))
        layers.append("landlock")
    if os.geteuid() == 0:
        layers += _leave_root(limits.other_user)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _install_filter(_PROGRAMS if limits.programs else (), threads=limits.threads)
    return (*layers, "no-new-privs", "seccomp")


def _leave_root(other_user: int) -> list[str]:
    """Give up root's capabilities for good, and its identity where another user can run the worker."""
    with contextlib.suppress(OSError):  # a number beyond the last capability, or nothing may be dropped
        for capability in range(64):
            _prctl(PR_CAPBSET_DROP, capability)
    layers = ["no-capabilities"]
    if other_user:
        os.setgroups([])
        os.setresgid(other_user, other_user, other_user)
        os.setresuid(other_user, other_user, other_user)
        _prctl(PR_SET_DUMPABLE, 1)  # both were cleared by the change of user
        die_with_parent()
        layers.append("another user")
    header, none = struct.pack("<Ii", CAPABILITY_VERSION_3, 0), bytes(24)
    if _libc.capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), "capset refused")
    return layers


def adopt_orphans() -> None:
    """Ask the kernel to make this process the parent of all descendants whose own parents have ended."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def sleep_exactly() -> None:
    """Ask the kernel to wake this process when it asked to be woken, not up to 50 us later with others."""
    _prctl(PR_SET_TIMERSLACK, 1)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies."""
    end_with_parent(signal.SIGKILL)


def end_with_parent(number: int) -> None:
    """Ask the kernel to send this process a signal when its parent dies."""
    _prctl(PR_SET_PDEATHSIG, number)


def _status_bytes(name: str) -> int:
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return 0


def _prctl(option: int, value: int, pointer: object = None) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), pointer, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl({option}) refused")


def _install_filter(allowed: tuple[str, ...] = (), all_threads: bool = False, threads: bool = True) -> None:
    """Install a seccomp program: forbidden calls kill, probing calls are refused, and new threads unless allowed."""
    arch, numbers = _ARCHES[platform.machine()]

    def load(offset: int) -> bytes:
        return struct.pack("<HBBI", 0x20, 0, 0, offset)

    def jump_equal(value: int, yes: int, no: int) -> bytes:
        return struct.pack("<HBBI", 0x15, yes, no, value)

    def answer(value: int) -> bytes:
        return struct.pack("<HBBI", 0x06, 0, 0, value)

    thread = ALLOW if threads else ERRNO_EACCES
    program = [load(4), jump_equal(arch, 1, 0), answer(KILL_PROCESS), load(0)]
    if platform.machine() == "x86_64":  # the x32 calls share the architecture value
        program += [struct.pack("<HBBI", 0x35, 0, 1, 0x40000000), answer(KILL_PROCESS)]
    for name, number in ((n, number) for n, number in numbers.items() if n not in allowed):
        if name == "clone3":  # its flags lie behind a pointer; glibc falls back to clone
            program += [jump_equal(number, 0, 1), answer(ERRNO_ENOSYS)]
        elif name == "clone":
            threads_only = [load(16), struct.pack("<HBBI", 0x45, 0, 1, CLONE_THREAD), answer(thread)]
            program += [jump_equal(number, 0, 4), *threads_only, answer(KILL_PROCESS)]
        elif name in _OWN_ONLY or name in _OWN_NUMBER:
            offset, value = (_OWN_ONLY[name], 0) if name in _OWN_ONLY else (_OWN_NUMBER[name], os.getpid())
            own = [load(offset), jump_equal(value, 0, 1), answer(ALLOW), answer(ERRNO_EACCES)]
            program += [jump_equal(number, 0, 4), *own]
        else:
            program += [jump_equal(number, 0, 1), answer(ERRNO_EACCES if name in _REFUSED else KILL_PROCESS)]
    program.append(answer(ALLOW))

    code = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(code))
    pointer = ctypes.create_string_buffer(header)
    if not all_threads:
        _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, pointer)
        return
    number = ctypes.c_long(SECCOMP_CALL[platform.machine()])
    if _libc.syscall(number, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, pointer) != 0:
        raise OSError(ctypes.get_errno(), "the filter of system calls cannot be put on all threads")
