"""A warm parent that forks workers: torch is imported once, a worker costs milliseconds instead of seconds.

Runs as `python -m kernel_scientist.workers.fork_server FD NATIVE CORES` with a clean environment and no secrets. Over
the control socket it takes one JSON line per request, with file descriptors attached:

    {"spawn": {...worker settings...}}  + [worker socket, log file, status pipe, shared memory]  ->  {"pid": 123}
    {"kill": 123}                                                 ->  {"killed": true}
    {"used": 123}                                                 ->  {"used": bytes in its folder, or null}
    {"keep": 123, "as": name}     what it compiled (`compile_cache`)  ->  {"files": 7}
    {"fill": 123, "from": name}   a worker's folder with that     ->  {"files": 7}

When a worker ends, its wait status is written to its status pipe as decimal text. When the control socket closes
(the evaluator is gone, however it went), every worker is killed.
"""

import contextlib
import ctypes
import fcntl
import importlib
import json
import os
import re
import selectors
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

from kernel_scientist.sandbox import bubblewrap, cleanup, seccomp
from kernel_scientist.workers import compile_cache, fork_server
from kernel_scientist.workers.native import NativeHarness

MESSAGE = 1 << 16
MANY = 32
"""After so many workers it pays to make forks cheaper (`pages`): it takes a third of a second; each gains 7 ms."""
PREFIX = "kernel-scientist-"
HOMES = ("HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR")
"""Variables that name a folder to write to: the worker's own."""


class ForkServer:
    """The forking parent's loop. Single-threaded on purpose: forking with threads is not safe."""

    def __init__(self, control: socket.socket, native: NativeHarness, folder: str) -> None:
        self.control, self.native, self.folder = control, native, folder
        self.status_pipes: dict[int, int] = {}
        self.scratches: dict[int, str] = {}
        self.forks, self.collapsed = 0, False

    def serve(self) -> None:
        """Answer requests and report deaths until the control socket closes."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        os.set_blocking(wake_read, False)
        signal.set_wakeup_fd(wake_write)
        signal.signal(signal.SIGCHLD, _noticed)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the evaluator's to handle
        ready = selectors.DefaultSelector()
        ready.register(self.control, selectors.EVENT_READ)
        ready.register(wake_read, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fileobj == wake_read:
                    os.read(wake_read, 4096)
                    self._reap()
                elif not self._answer():
                    self._kill_all()
                    return

    def _answer(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(self.control, MESSAGE, 4)
        except OSError:
            return False
        if not data:
            return False
        request: dict[str, Any] = json.loads(data)
        if "spawn" in request:
            reply = {"pid": self._spawn(request["spawn"], descriptors)}
        elif "keep" in request:
            reply = {"files": compile_cache.keep(self._scratch(request["keep"]), self._kept(request["as"]))}
        elif "fill" in request:
            reply = {"files": compile_cache.fill(self._kept(request["from"]), self._scratch(request["fill"]))}
        elif "used" in request:
            reply = {"used": cleanup.used(self._scratch(int(request["used"])))}
        else:
            reply = {"killed": self._kill(int(request["kill"]))}
        self.control.send(json.dumps(reply).encode())
        return True

    def _scratch(self, pid: int) -> Path:
        return Path(self.scratches.get(pid, self.folder + "/gone"))

    def _kept(self, name: str) -> Path:
        return Path(self.folder) / f"kept-{name}"

    def _spawn(self, settings: dict[str, Any], descriptors: list[int]) -> int:
        worker_fd, log_fd, status_fd, inputs_fd = descriptors
        settings["scratch"] = scratch = tempfile.mkdtemp(dir=self.folder)
        settings["environment"] = dict.fromkeys(HOMES, scratch)
        settings["other_user"] = self._user(scratch) if settings["other_user"] else 0
        compile_cache.fill(self._kept(compile_cache.OURS), Path(scratch))
        self.forks += 1
        if self.forks >= MANY and not self.collapsed and not self.status_pipes:  # nobody is being timed
            self.collapsed = True
            fork_server.collapse()
        pid = os.fork()
        if pid == 0:
            try:
                self._become_worker(settings, worker_fd, log_fd, inputs_fd)
            except BaseException:
                traceback.print_exc()  # into the worker's log, whose end the evaluator quotes
            finally:
                os._exit(70)
        os.close(worker_fd)
        os.close(log_fd)
        os.close(inputs_fd)
        self.status_pipes[pid], self.scratches[pid] = status_fd, scratch
        return pid

    def _user(self, scratch: str) -> int:
        """Give a worker's folder to a user that no other worker is: none may move another's threads; return who."""
        user = seccomp.FIRST_USER + self.forks % seccomp.USERS
        try:
            os.chown(scratch, user, user)
        except OSError:
            user = seccomp.NOBODY
            os.chown(scratch, user, user)
        return user

    def _become_worker(self, settings: dict[str, Any], worker_fd: int, log_fd: int, inputs_fd: int) -> None:
        os.setsid()
        seccomp.die_with_parent()
        seccomp.adopt_orphans()
        seccomp.sleep_exactly()
        from kernel_scientist.workers.untrusted import main as worker

        tempfile.tempdir = None  # remembered from this process's; the worker's is its own folder
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
        channel, inputs = (fcntl.fcntl(fd, fcntl.F_DUPFD, 16) for fd in (worker_fd, inputs_fd))
        os.dup2(channel, 3)
        os.dup2(inputs, worker.INBOX)
        os.closerange(worker.INBOX + 1, 1 << 16)
        worker.run(socket.socket(fileno=3), settings, self.native)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            pipe = self.status_pipes.pop(pid, None)
            if pipe is not None:
                _end_group(pid)
                cleanup.remove(Path(self.scratches.pop(pid)))
                with contextlib.suppress(BrokenPipeError):  # the evaluator may have stopped caring
                    os.write(pipe, str(os.waitstatus_to_exitcode(status)).encode())
                os.close(pipe)

    def _kill(self, pid: int) -> bool:
        if pid not in self.status_pipes:
            return False  # it has ended and been reaped: the number may be somebody else's by now
        _end_group(pid)
        os.kill(pid, signal.SIGKILL)
        return True

    def _kill_all(self) -> None:
        for pid in self.status_pipes:
            self._kill(pid)
        for pid in self.status_pipes:
            os.waitpid(pid, 0)  # its folder is removed next; nobody must be writing there


def _noticed(_signal: int, _frame: FrameType | None) -> None:
    """Let the wake-up pipe be written; SIG_DFL would not."""


def _end_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _clear_stale() -> None:
    """Remove the folders of fork servers that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        number = folder.name.removeprefix(PREFIX).partition("-")[0]
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            cleanup.remove(folder)


def main() -> None:
    """Import what is to be shared, say so, serve; leave no folder behind."""
    control = socket.socket(fileno=int(sys.argv[1]))
    native = NativeHarness(sys.argv[2])
    os.sched_setaffinity(0, {int(core) for core in sys.argv[3].split(",")})
    for module in ("kernel_scientist.workers.untrusted.main", *sys.argv[4:]):
        importlib.import_module(module)
    bubblewrap.readable()  # it takes 2 ms: not once per worker
    _clear_stale()
    folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
    os.chmod(folder, 0o711)  # another user's worker must reach its own folder in it
    try:
        control.send(b'{"ready": true}')
        ForkServer(control, native, folder).serve()
    finally:
        cleanup.remove(Path(folder))


if __name__ == "__main__":
    main()


HUGE = 2 << 20
MADV_COLLAPSE = 25
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p 00000000 00:00 0 +(?:\[heap\])?$", re.ASCII)
_libc: Any = ctypes.CDLL(None, use_errno=True)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def collapse() -> None:
    """Bring what this process has allocated so far onto huge pages, where the system can."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        if found := _MAPPING.match(line):
            start, end = (int(word, 16) for word in found.groups())
            start, end = -(-start // HUGE) * HUGE, end // HUGE * HUGE
            if start < end:
                _libc.madvise(start, end - start, MADV_COLLAPSE)
