"""A server that imports a module once and forks confined processes that call its `main`: an import of torch takes 1.6
CPU seconds, a fork some milliseconds.

Runs as `python -P -m kernel_scientist.sandbox.forking FD MODULE`. It runs nothing of a submission itself. Over the
control socket it receives JSON requests and sends one JSON reply each (`forked` is the other side):

    {"run": {...order...}} + [log file, status pipe]  ->  {"pid": 123}
    {"end": 123, "signal": 15}                        ->  {}

A process is confined before it calls `main`, as `confine` confines a program: the same folder, files, limits and
system calls. When it ends, the server writes its status, as decimal text, to the status pipe. When the control socket
closes, the server ends, and its processes end with it. Imports only the standard library besides MODULE.
"""

import contextlib
import gc
import importlib
import json
import os
import resource
import selectors
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kernel_scientist.sandbox import confine, lifetime

MESSAGE = 1 << 17
LOG = 3
"""Descriptor of a process's log, until it is that of its output."""


class ForkOrder(NamedTuple):
    """What a process may reach and use."""

    folder: str
    """Its working folder, the only one in which it may write."""
    readable: Sequence[str]
    """Files and folders that it may read besides the system's."""
    memory_bytes: int
    file_bytes: int
    cpu_s: int


class ForkingServer:
    """The server's request loop. It is single-threaded, because forking with threads is unsafe."""

    def __init__(self, control: socket.socket, main: Callable[[], None]) -> None:
        self.control, self.main, self.pid = control, main, os.getpid()
        self.status_pipes: dict[int, int] = {}
        """By the process that keeps a program (`lifetime.keep`)."""
        self.ready = selectors.DefaultSelector()

    def serve(self) -> None:
        """Answer requests and report the ends of processes until the control socket closes."""
        self.ready.register(self.control, selectors.EVENT_READ)
        while True:
            for key, _ in self.ready.select():
                if key.data is not None:
                    self._reap(key.fd, key.data)
                elif not self._answer():
                    return

    def _answer(self) -> bool:
        data, descriptors = b"", list[int]()
        with contextlib.suppress(OSError):
            data, descriptors, _, _ = socket.recv_fds(self.control, MESSAGE, 2)
        if not data:
            return False
        request: dict[str, Any] = json.loads(data)
        reply: dict[str, Any] = {}
        if "run" in request:
            reply = {"pid": self._fork(ForkOrder(**request["run"]), *descriptors)}
        elif request["end"] in self.status_pipes:  # once reaped, its number may belong to another process
            self._end(request["end"], request["signal"])
        self.control.send(json.dumps(reply).encode())
        return True

    def _fork(self, order: ForkOrder, log: int, status_pipe: int) -> int:
        pid = os.fork()
        if pid == 0:
            status: Any = 1
            try:
                _prepare(order, log)
                status = lifetime.keep(self.pid, lambda: _become(order, self.main))
            except SystemExit as ended:
                status = ended.code
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(status if isinstance(status, int) else 1)
        os.close(log)
        self.status_pipes[pid] = status_pipe
        self.ready.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)
        return pid

    def _end(self, pid: int, number: int) -> None:
        """Ask a keeper to end its program, or kill it with its process group."""
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGKILL:
                os.killpg(pid, number)
            else:
                os.kill(pid, number)

    def _reap(self, ended: int, pid: int) -> None:
        self._end(pid, signal.SIGKILL)  # what is left of its process group
        _, status = os.waitpid(pid, 0)
        self.ready.unregister(ended)
        os.close(ended)
        pipe = self.status_pipes.pop(pid)
        with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
            os.write(pipe, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(pipe)


def _prepare(order: ForkOrder, log: int) -> None:
    """Make this new child the keeper of a program in its own folder, with the order's limits and no other files."""
    os.setsid()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.closerange(LOG, 1 << 16)
    os.chdir(order.folder)
    os.environ["TMPDIR"], tempfile.tempdir = order.folder, None
    for limit, most in (
        (resource.RLIMIT_AS, order.memory_bytes),
        (resource.RLIMIT_FSIZE, order.file_bytes),
        (resource.RLIMIT_CPU, order.cpu_s),
    ):
        resource.setrlimit(limit, (most, most))


def _become(order: ForkOrder, main: Callable[[], None]) -> None:
    """Confine this process and call `main`; ends it as the interpreter would end a program."""
    status, keeper = 1, os.getppid()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        confine.enter(sys.executable, order.folder, order.readable)
        if os.getppid() == keeper:  # otherwise it has ended, and nobody would end this process
            main()
            status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status & 0xFF)


def main() -> None:
    """Import the module and serve requests."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other side handles Ctrl-C
    module = importlib.import_module(sys.argv[2])
    gc.freeze()  # a collection in a child would copy the pages of all objects
    ForkingServer(socket.socket(fileno=int(sys.argv[1])), module.main).serve()
    os._exit(0)  # the interpreter's end takes half a second with torch


if __name__ == "__main__":
    main()
