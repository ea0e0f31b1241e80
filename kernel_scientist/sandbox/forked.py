"""Runs the `main` of a module in confined processes that a server forks (`forking`), one at a time or several.

There is one server per module and process of ours, from the first call on. It ends with our process.
"""

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.sandbox import confine, landlock, memory_kills
from kernel_scientist.sandbox.forking import ForkOrder

REPLY = 1 << 10
END_S = 5
"""Seconds that a server has to end."""


def run(
    module: str, folder: Path, readable: tuple[str, ...], timeout_s: float, memory_bytes: int
) -> tuple[int | None, str]:
    """Call a module's `main` in a confined process; return its status (None: timeout) and its output.

    Everything is as `confine.run` does it for `python -P -m MODULE`, its failures included. Without Landlock, which a
    process applies to itself, such a program is started.
    """
    if not landlock.version():
        program = [sys.executable, "-P", "-m", module]
        return confine.run(confine.command(program, folder, readable), folder, timeout_s, memory_bytes)
    kills = memory_kills.count()
    order = ForkOrder(str(folder), readable, memory_bytes, confine.FILE_BYTES, confine.most_cpu_s(timeout_s))
    with (folder / "log").open("w+b") as log:
        status = _server(module, os.getpid()).run(order, log.fileno(), confine.patience_s(timeout_s))
        if status and memory_kills.count() > kills:
            raise InfrastructureError(confine.OUT_OF_MEMORY)
        return status, confine.text(log, folder)


class InspectionServer:
    """A server of one module; it is started when it is needed."""

    def __init__(self, module: str) -> None:
        self._module, self._lock = module, threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def run(self, order: ForkOrder, log: int, patience_s: float) -> int | None:
        """Run a process to its end; return its status, None if it took longer. Raises InfrastructureError."""
        ended, status_pipe = os.pipe()
        pid = 0
        try:
            try:
                pid = self._started(order, log, status_pipe)
            finally:
                os.close(status_pipe)  # the server has it: without the server the pipe is closed
            if not _readable(ended, patience_s):
                self._ask_to_end(pid, signal.SIGTERM)
                _readable(ended, confine.PATIENCE_S)
                return None
            text = os.read(ended, 16)
            pid = 0
            if not text:
                raise InfrastructureError(f"the server that forks {self._module} has ended")
            return int(text)
        finally:
            if pid:
                self._ask_to_end(pid, signal.SIGKILL)
                _readable(ended, confine.PATIENCE_S)
            os.close(ended)

    def close(self) -> None:
        """End the server and its processes."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            try:
                self._process.wait(END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._control = self._process = None

    def _started(self, order: ForkOrder, log: int, status_pipe: int) -> int:
        """Return the number of a new process. A server that has ended, killed by the system perhaps, is replaced."""
        with self._lock:
            for _ in range(2):
                if reply := self._reply(json.dumps({"run": order._asdict()}), [log, status_pipe]):
                    return int(json.loads(reply)["pid"])
                self._close()
        raise InfrastructureError(f"the server that forks {self._module} does not start")

    def _ask_to_end(self, pid: int, number: signal.Signals) -> None:
        """Have a signal sent to a process; a server that has ended has ended it as well."""
        with self._lock:
            if self._control is not None:
                self._reply(json.dumps({"end": pid, "signal": number}), [])

    def _reply(self, request: str, descriptors: list[int]) -> bytes:
        """Return the answer to a request; empty if the server has ended."""
        control = self._control or self._open()
        try:
            socket.send_fds(control, [request.encode()], descriptors)
            return control.recv(REPLY)
        except OSError:
            return b""

    def _open(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kernel_scientist.sandbox.forking", str(theirs.fileno()), self._module],
                env=confine.environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._control = ours
        return ours


def _readable(descriptor: int, seconds: float) -> bool:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


@functools.cache
def _server(module: str, _: int) -> InspectionServer:
    """Return a module's server. A process of ours that was forked has servers of its own."""
    return InspectionServer(module)
