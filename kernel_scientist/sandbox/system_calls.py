"""The system calls that are refused in a worker, and the seccomp program that refuses them.

Refused is whatever reaches another process (its cores, priority, limits, signals, memory), what processes share without
a file (System V IPC, queues, sockets), and what would free a worker of its evaluator. What a worker changes of its own
ends with it, because workers are not forked from each other (`workers.execution_environment`).
"""

import os
import platform
import struct

ALLOW, KILL = 0x7FFF0000, 0x80000000
SUCCESS, EACCES, ENOSYS = 0x00050000, 0x0005000D, 0x00050026
"""Results of a filter: allow the call, kill the process, do nothing and report success or an error number."""
CLONE_THREAD = 0x00010000
X32_CALLS = 0x40000000
SECCOMP = {"x86_64": 317, "aarch64": 277}
"""Number of the system call `seccomp`, by machine."""
STEP_BYTES = 8
"""Bytes of one step of a program."""
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The architecture's value in a filter, by machine."""
NUMBERS = {
    "clone": (56, 220), "clone3": (435, 435), "fork": (57, None), "vfork": (58, None), "execve": (59, 221),
    "execveat": (322, 281), "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "perf_event_open": (298, 241), "bpf": (321, 280), "userfaultfd": (323, 282), "keyctl": (250, 219),
    "add_key": (248, 217), "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97), "setns": (308, 268),
    "reboot": (169, 142), "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "io_uring_setup": (425, 425), "socket": (41, 198), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274), "sched_setaffinity": (203, 122),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "prlimit64": (302, 261),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semctl": (66, 191),
    "semop": (65, 193), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "kill": (62, 129), "tkill": (200, 130),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272), "move_pages": (279, 239),
    "migrate_pages": (256, 238), "mbind": (237, 235), "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450), "connect": (42, 203), "accept": (43, 202), "accept4": (288, 242),
    "fcntl": (72, 25), "ioctl": (16, 29), "prctl": (157, 167),
}  # fmt: skip
"""Numbers of the restricted system calls per architecture (Linux: syscall_64.tbl, asm-generic/unistd.h)."""
REFUSED = (
    *("socket", "io_uring_setup", "kill", "tkill", "pidfd_open", "pidfd_send_signal", "perf_event_open"),
    *("sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity", "ioprio_set"),
    *("shmget", "shmat", "shmctl", "semget", "semctl", "semop", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl"),
    *("mq_open", "mq_unlink", "process_madvise", "process_mrelease", "kcmp", "move_pages", "migrate_pages"),
    *("mbind", "set_mempolicy", "set_mempolicy_home_node", "connect", "accept", "accept4"),
)
"""Calls that fail with EACCES instead of killing the process, because ordinary libraries probe them.

Cores, also the caller's own: a filter does not see which ones are asked for, and a worker keeps those of the record.
Where memory lies (`mbind`): workers that come later use the same shared memory."""
_BY_DRIVERS = ("mbind", "set_mempolicy")
"""Calls that a GPU's driver makes for its own memory."""
AF_UNIX, SOCK_SEQPACKET, SOCKET_TYPES = 1, 5, 0xF
"""The only socket that a GPU's worker may open, until it is sealed; the bits of a socket's type. CUDA's driver binds
one to a name of its own, to hand memory to other processes, and does not start without it (error 304). As `connect` and
`accept` are refused, nothing is sent through it."""
FIRST, SECOND, THIRD = 16, 24, 32
"""Offsets of a call's arguments (their lower halves)."""
_OWN_ONLY = {"prlimit64": (FIRST,), "setpriority": (FIRST, SECOND)}
"""Calls that are allowed if these arguments are 0, which means the caller (and not its group or all of its user)."""
_OWN_NUMBER = ("tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
"""Calls that are allowed if the first argument is the caller's number: abort, signals to own threads."""
F_SETOWN, F_SETSIG, F_SETOWN_EX, FIOSETOWN, SIOCSPGRP = 8, 10, 15, 0x8901, 0x8902
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
_NOT_WITH = {
    "fcntl": (SECOND, (F_SETOWN, F_SETSIG, F_SETOWN_EX)),  # a descriptor that signals its "owner", any process
    "ioctl": (SECOND, (FIOSETOWN, SIOCSPGRP)),
    "prctl": (FIRST, (PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER)),  # the evaluator stops its threads, finds its orphans
}
"""Calls that are refused if the argument at an offset has one of these values."""
OF_PROGRAMS = ("fork", "vfork", "execve", "execveat", "clone", "clone3")
"""Calls needed to start a program."""


def program(
    allowed: tuple[str, ...] = (), threads: bool = True, on_gpu: bool = False, listening: bool = False
) -> bytes:
    """Return a seccomp program. Forbidden calls kill the process; probing calls and unwanted threads get an error.

    `on_gpu`: whether a GPU's driver runs here. It may place its own memory; the threads that it starts for certain
    cores are started, but run on those of the process. `listening`: whether the socket of CUDA's driver may be opened.
    """
    machine = platform.machine()
    column, architecture = list(_ARCHITECTURES).index(machine), _ARCHITECTURES[machine]
    load, keep_bits, jump_equal, jump_from, jump_any, answer = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("<HBBI", code, yes, no, value)

    def only_if(value: int, *offsets: int) -> list[bytes]:
        tests = [
            (step(load, offset), step(jump_equal, value, no=2 * left + 1))
            for offset, left in zip(offsets, range(len(offsets) - 1, -1, -1), strict=True)
        ]
        return [*(one for test in tests for one in test), step(answer, ALLOW), step(answer, EACCES)]

    def not_with(offset: int, values: tuple[int, ...]) -> list[bytes]:
        tests = [step(jump_equal, value, yes=len(values) - at) for at, value in enumerate(values)]
        return [step(load, offset), *tests, step(answer, ALLOW), step(answer, EACCES)]

    thread = step(answer, ALLOW if threads else EACCES)
    of_cuda = [step(load, FIRST), step(jump_equal, AF_UNIX, no=3), step(load, SECOND), step(keep_bits, SOCKET_TYPES)]
    of_cuda += [step(jump_equal, SOCK_SEQPACKET, yes=1), step(answer, EACCES), step(answer, ALLOW)]
    of_gpu = {
        "sched_setaffinity": [step(answer, SUCCESS)],
        **{name: [step(answer, ALLOW)] for name in _BY_DRIVERS},
    }
    rules = {
        **{name: [step(answer, EACCES if name in REFUSED else KILL)] for name in NUMBERS},
        **{name: only_if(0, *offsets) for name, offsets in _OWN_ONLY.items()},
        **{name: only_if(os.getpid(), FIRST) for name in _OWN_NUMBER},
        **{name: not_with(*values) for name, values in _NOT_WITH.items()},
        **(of_gpu if on_gpu else {}),
        **({"socket": of_cuda} if listening else {}),
        "clone": [step(load, FIRST), step(jump_any, CLONE_THREAD, no=1), thread, step(answer, KILL)],
        "clone3": [step(answer, ENOSYS)],  # its flags lie behind a pointer; glibc falls back to clone
    }
    steps = [step(load, 4), step(jump_equal, architecture, yes=1), step(answer, KILL), step(load, 0)]
    if machine == "x86_64":  # the x32 calls share the architecture's value
        steps += [step(jump_from, X32_CALLS, no=1), step(answer, KILL)]
    for name, rule in rules.items():
        number = NUMBERS[name][column]
        if number is not None and name not in allowed:
            steps += [step(jump_equal, number, no=len(rule)), *rule]
    return b"".join((*steps, step(answer, ALLOW)))
