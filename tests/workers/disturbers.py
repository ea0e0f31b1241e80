"""Kernels that reach for whatever times their rivals: other processes, and what later workers inherit or share.

Each is Python that runs while a kernel's file is imported. It notes in `reached` what it got through, and in `absent`
of which calls there was no victim. What is refused is an error, or ends the worker.
"""

from tests.conftest import dedent

HEAD = '''
import ctypes, fcntl, gc, mmap, os, platform, resource, signal, socket, struct, sys, threading, time
import torch

NUMBERS = {
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "setpriority": (141, 140), "ioprio_set": (251, 30), "prlimit64": (302, 261),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272), "move_pages": (279, 239),
    "migrate_pages": (256, 238), "mbind": (237, 235), "set_mempolicy": (238, 237),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semctl": (66, 191),
    "semop": (65, 193), "msgget": (68, 186), "msgsnd": (69, 189), "msgctl": (71, 187), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "io_uring_setup": (425, 425), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "membarrier": (324, 283), "prctl": (157, 167),
}
LIBC = ctypes.CDLL(None, use_errno=True)
reached, absent = [], []


def call(name, *arguments):
    """Make a system call by its number. Raises OSError if it is refused, or if its object is not there."""
    passed = [ctypes.c_long(x) if isinstance(x, int) else x for x in arguments]
    got = LIBC.syscall(ctypes.c_long(NUMBERS[name][platform.machine() != "x86_64"]), *passed)
    if got < 0:
        raise OSError(ctypes.get_errno(), name)
    return got


def attempt(name, *arguments):
    """Make a system call; note it if it got through."""
    try:
        call(name, *arguments)
        reached.append((name, *(x for x in arguments if isinstance(x, int))))
    except OSError as error:
        if error.errno == 3:
            absent.append(arguments)


def write(path, text):
    """Write a file; note it if that got through."""
    try:
        with open(path, "w") as file:
            file.write(text)
        reached.append(path)
    except OSError:
        pass


def burn():
    while True:
        pass
'''
EACH = {
    "its cores": 'attempt("sched_setaffinity", victim, 8, struct.pack("<Q", 1))',
    "its scheduling class": 'attempt("sched_setscheduler", victim, 5, struct.pack("<i", 0))',
    "its scheduling parameters": 'attempt("sched_setparam", victim, struct.pack("<i", 0))',
    "its scheduling attributes": 'attempt("sched_setattr", victim, struct.pack("<IIQi28x", 48, 0, 0, 19), 0)',
    "its niceness": 'attempt("setpriority", 0, victim, 19)',
    "the niceness of its group": 'attempt("setpriority", 1, victim, 19)',
    "its priority of I/O": 'attempt("ioprio_set", 1, victim, 3 << 13)',
    "its limits": 'attempt("prlimit64", victim, resource.RLIMIT_NOFILE, struct.pack("<QQ", 8, 8), None)',
    "kill": 'attempt("kill", victim, signal.SIGSTOP)',
    "tkill": 'attempt("tkill", victim, signal.SIGSTOP)',
    "tgkill": 'attempt("tgkill", victim, victim, signal.SIGSTOP)',
    "rt_sigqueueinfo": 'attempt("rt_sigqueueinfo", victim, signal.SIGSTOP, struct.pack("<iii116x", 19, 0, -1))',
    "rt_tgsigqueueinfo": (
        'attempt("rt_tgsigqueueinfo", victim, victim, signal.SIGSTOP, struct.pack("<iii116x", 19, 0, -1))'
    ),
    "pidfd": 'attempt("pidfd_open", victim, 0)',
    "the owner of a pipe gets a signal": """
        ours, theirs = socket.socketpair()
        fcntl.fcntl(ours, 10, signal.SIGSTOP)  # F_SETSIG
        fcntl.fcntl(ours, fcntl.F_SETOWN, victim)
        fcntl.fcntl(ours, fcntl.F_SETFL, fcntl.fcntl(ours, fcntl.F_GETFL) | os.O_ASYNC)
        theirs.send(b"x")
        reached.append(("F_SETOWN", victim))
    """,
    "the owner of a socket by ioctl": """
        ours, theirs = socket.socketpair()
        fcntl.fcntl(ours, 10, signal.SIGSTOP)
        fcntl.ioctl(ours, 0x8901, struct.pack("<i", victim))  # FIOSETOWN
        fcntl.fcntl(ours, fcntl.F_SETFL, fcntl.fcntl(ours, fcntl.F_GETFL) | os.O_ASYNC)
        theirs.send(b"x")
        reached.append(("FIOSETOWN", victim))
    """,
    "ptrace": 'attempt("ptrace", 0x4206, victim, 0, 0)',
    "its memory is written": """
        here = ctypes.create_string_buffer(8)
        vector = struct.pack("<QQ", ctypes.addressof(here), 8)
        attempt("process_vm_writev", victim, vector, 1, vector, 1, 0)
    """,
    "kcmp": 'attempt("kcmp", os.getpid(), victim, 0, 0, 0)',
    "its pages are moved": 'attempt("migrate_pages", victim, 64, struct.pack("<Q", 1), struct.pack("<Q", 1))',
    "its pages are asked for": 'attempt("move_pages", victim, 0, None, None, None, 0)',
}
"""What a kernel does to each victim."""
PROC = {
    "oom_score_adj": "1000",
    "timerslack_ns": "1000000000",
    "coredump_filter": "0x7f",
    "clear_refs": "1",
    "autogroup": "19",
    "comm": "x",
}
"""What it writes to the files of each victim in /proc."""
ONCE = {
    "the niceness of all of the user": 'attempt("setpriority", 2, 0, 1)',
    "the priority of I/O of all of the user": 'attempt("ioprio_set", 3, 0, 3 << 13)',
    "System V memory of others": """
        for index in range(64):
            attempt("shmctl", index, 13, ctypes.create_string_buffer(256))  # SHM_STAT
            attempt("shmat", index, None, 0)
        attempt("shmget", 0x1234, 4096, 0o1666)
    """,
    "System V semaphores and messages of others": """
        attempt("semget", 0x1234, 1, 0o1666)
        attempt("msgget", 0x1234, 0o1666)
        for index in range(8):
            attempt("semctl", index, 0, 0)  # IPC_RMID
            attempt("msgctl", index, 0, None)
    """,
    "POSIX queues": """
        attempt("mq_open", b"left-behind", os.O_CREAT | os.O_RDWR, 0o600, None)
        attempt("mq_unlink", b"of-another")
    """,
    "abstract sockets": """
        try:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.bind("\\0left-behind")
            reached.append("socket")
        except OSError:
            pass
    """,
    "io_uring": 'attempt("io_uring_setup", 8, ctypes.create_string_buffer(256))',
    "performance counters": 'attempt("perf_event_open", ctypes.create_string_buffer(128), -1, 0, -1, 0)',
    "faults handled by itself": 'attempt("userfaultfd", 0)',
    "where the shared memory lies": """
        shared = mmap.mmap(4, 1 << 20, flags=mmap.MAP_SHARED)
        at = ctypes.addressof(ctypes.c_char.from_buffer(shared))
        attempt("mbind", at, 1 << 20, 2, struct.pack("<Q", 1), 64, 0)
        attempt("set_mempolicy", 2, struct.pack("<Q", 1), 64)
    """,
    "keeps the evaluator from stopping its threads": 'attempt("prctl", 4, 0, 0, 0, 0)',  # PR_SET_DUMPABLE
    "gives its orphans away": 'attempt("prctl", 36, 0, 0, 0, 0)',  # PR_SET_CHILD_SUBREAPER
    "shared folders": """
        for folder in ("/dev/shm", "/var/tmp", "/tmp", sys.prefix, os.path.dirname(torch.__file__)):
            write(f"{folder}/kernel-cheat", "x")
    """,
    "clocks of the processor": """
        for cpu in range(os.cpu_count() or 1):
            folder = f"/sys/devices/system/cpu/cpu{cpu}/"
            write(f"{folder}cpufreq/scaling_governor", "powersave")
            write(f"{folder}cpuidle/state0/disable", "1")
        write("/dev/cpu_dma_latency", "0")
    """,
    "settings of the system": """
        write("/proc/sys/vm/drop_caches", "3")
        write("/proc/sys/kernel/sched_rt_runtime_us", "1")
        write("/sys/kernel/mm/transparent_hugepage/enabled", "never")
    """,
    "locks of the device": """
        for path in ("/tmp/kernel-scientist.locks", "/tmp/kernel-scientist.locks/cpu.lock"):
            try:
                reached.append(os.open(path, os.O_RDONLY))
            except OSError:
                pass
    """,
}
"""What it does once."""
OWN = {
    "its own cores": """
        try:
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        except OSError:
            pass
    """,
    "its own niceness, limits and mask": """
        os.nice(3)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
        os.umask(0o777)
        LIBC.prctl(29, 1_000_000_000, 0, 0, 0)  # PR_SET_TIMERSLACK
        LIBC.prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE
        LIBC.personality(0x0040000)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    """,
    "a process that burns a core": """
        pid = os.fork()
        if pid == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            burn()
    """,
    "threads that burn the cores": """
        for _ in range(4):
            threading.Thread(target=burn, daemon=True).start()
    """,
    "thousands of threads": """
        threading.stack_size(1 << 16)
        try:
            for _ in range(5000):
                threading.Thread(target=threading.Event().wait, daemon=True).start()
        except (RuntimeError, MemoryError):
            pass
    """,
    "all of its memory": """
        kept = []
        try:
            while True:
                kept.append(bytearray(1 << 26))
        except MemoryError:
            pass
    """,
    "all of its folder": """
        try:
            for index in range(100):
                with open(f"full{index}", "wb") as file:
                    file.write(bytes(1 << 22))
        except OSError:
            pass
    """,
    "holes in the shared memory": """
        LIBC.fallocate(4, 3, ctypes.c_long(1 << 16), ctypes.c_long(1 << 20))  # PUNCH_HOLE, KEEP_SIZE
    """,
}
"""What it may do to itself, of which a later worker notices nothing. Some of it ends the worker."""


def _each(body: str) -> str:
    return "for victim in VICTIMS:\n    try:\n" + _indented(dedent(body), 8) + "    except OSError:\n        pass\n"


def _indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.strip().splitlines())


BODIES = {
    **{name: _each(body) for name, body in EACH.items()},
    **{f"its /proc/.../{name}": f'for victim in VICTIMS:\n    write(f"/proc/{{victim}}/{name}", "{text}")\n'
       for name, text in PROC.items()},
    **{name: dedent(body) for name, body in (ONCE | OWN).items()},
}  # fmt: skip
"""All of them by name."""


def at_import(name: str, victims: str) -> str:
    """Return the beginning of a kernel's file that disturbs. `victims`: Python for the numbers of other processes."""
    return f"{HEAD}\n\nVICTIMS = {victims}\n\n\ndef disturb():\n{_indented(BODIES[name], 4)}\n\ndisturb()\n"
