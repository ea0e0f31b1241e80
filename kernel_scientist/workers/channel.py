"""Messages to and from one worker, their time limits, and the failures for late answers and ended workers."""

import contextlib
import os
import re
import select
import signal
import socket
import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernel_scientist.records.errors import InfrastructureError, StoppedError
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import memory_kills, protocol
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.sandbox.process import Process, TimeLimit, signal_name
from kernel_scientist.workers.validation import protocol_violation, unexpected

TRANSFER_TIMEOUT_S = 60
LOG_TAIL, MOST_TRACE = 2000, 16000
"""Most characters of a worker's output that are quoted, and of what is looked through for them."""
FAULT = "Fatal Python error: Segmentation fault"
"""Beginning of the traceback in the output of a worker that died of a fault (faulthandler)."""
FRAME = re.compile(r'File "[^"]*kernel\.py", line (\d+)')
PATIENCE_S, BYTES_PER_S = 0.1, 200 << 20
"""Average time allowed per answer, and assumed transfer rate. In total, a worker's answers may exceed the allowance by
the time limit of one call."""

OURS = (str(Path(__file__).resolve().parents[1]), "<frozen runpy>", "Extension modules: ")
"""What lines of such a traceback are left out: the evaluator's own frames, and the list of modules at its end."""
Answer = tuple[protocol.Header, list[bytearray]]


@dataclass(eq=False)
class Channel:
    """A socket to a worker, with its log and exit status. Errors of the worker raise KernelFailure."""

    sock: socket.socket
    log: int
    """Descriptor of the file with the worker's standard output."""
    status_fd: int
    limits: Harness
    stopped: threading.Event
    on_gpu: bool = field(default=False, kw_only=True)
    process: Process = field(default=Process(0), init=False)
    """The worker's process, numbered outside all namespaces; 0 until the worker has sent its first message."""
    _overdue_s: float = field(default=0.0, init=False)
    """Time by which this worker's answers exceeded their allowance, except calls of the kernel."""
    _memory_kills: int = field(default_factory=memory_kills.count, init=False)
    """Processes that the system had killed for want of memory when the worker was started."""
    _has_ended: bool = field(default=False, init=False)
    """Whether its exit status was read."""

    def alive(self) -> bool:
        """Whether the worker is still running."""
        return not self._has_ended and not select.select([self.status_fd], [], [], 0)[0]

    def log_tail(self) -> str:
        """Return the end of what the worker printed."""
        printed, fault, trace = self._log_end().partition(FAULT)
        text = (printed + fault + "".join(filter(None, map(_of_kernel, trace.splitlines(True)))))[-LOG_TAIL:].strip()
        return f"its last output: {text}" if text else "it printed nothing"

    def _log_end(self) -> str:
        size, most = os.fstat(self.log).st_size, LOG_TAIL + MOST_TRACE
        return os.pread(self.log, most, max(0, size - most)).decode(errors="replace")

    def _ask(
        self, request: protocol.Header, answer: str, doing: str, buffers: Sequence[protocol.Buffer] = ()
    ) -> Answer:
        """Send a request; return the answer. Raises KernelFailure if it is late or invalid."""
        with self._timed(sum(map(len, buffers))) as limit:
            self._send(request, buffers)
            return self._receive(answer, limit, doing)

    def _require_waiting(self, warm: bool) -> None:
        """Wait until the worker is at the start barrier. `warm`: after an untimed call, which has its own limit."""
        doing = "its call before the row" if warm else "the preparation of its call"
        limited = contextlib.nullcontext(self._limit(self.limits.call_timeout_s)) if warm else self._timed()
        with limited as limit, self._failures(doing, limit):
            self._await(limit)
            byte = self.sock.recv(1)
        if not byte:
            raise self._death(doing)
        if byte != b"r":
            raise protocol_violation("it does not wait at the start barrier")

    @contextlib.contextmanager
    def _timed(self, moved: int = 0) -> Generator[TimeLimit]:
        """Yield the limit that the worker has left for its answer, and charge what it uses of it in the context."""
        limit = self._limit(max(self.limits.call_timeout_s - self._overdue_s, 0.01))
        yield limit
        self._overdue_s += limit.used_s() - PATIENCE_S - moved / BYTES_PER_S

    def _limit(self, seconds: float) -> TimeLimit:
        return TimeLimit(self.process, seconds, self.on_gpu)

    def _await(self, limit: TimeLimit) -> None:
        """Wait for something to receive. Raises TimeoutError."""
        while not select.select([self.sock], [], [], left_s := limit.left_s())[0]:
            if not left_s:
                raise TimeoutError

    def _send(self, header: protocol.Header, buffers: Sequence[protocol.Buffer] = ()) -> None:
        with self._failures("reading a request", TRANSFER_TIMEOUT_S):
            self.sock.settimeout(TRANSFER_TIMEOUT_S)
            protocol.send(self.sock, header, list(buffers))

    def _receive(self, op: str, limit: TimeLimit, doing: str, most_bytes: int = 0) -> Answer:
        """Receive a message with operation `op` and at most `most_bytes` of buffers."""
        reply, buffers = self._message(limit, doing, most_bytes)
        self._expect(reply, op, doing)
        return reply, buffers

    def _message(self, limit: TimeLimit, doing: str, most_bytes: int = 0) -> Answer:
        with self._failures(doing, limit):
            self._await(limit)
            return protocol.receive(self.sock, min(TRANSFER_TIMEOUT_S, limit.longest_wait_s), most_bytes)

    def _expect(self, reply: protocol.Header, op: str, doing: str) -> None:
        if flood := self._flood():
            raise flood
        if reply.get("op") != op:
            raise unexpected(reply, op, doing)

    @contextlib.contextmanager
    def _failures(self, doing: str, limit: TimeLimit | float) -> Generator[None]:
        """Turn communication errors into KernelFailure."""
        try:
            yield
        except TimeoutError as error:
            words = limit.words() if isinstance(limit, TimeLimit) else f"took longer than {limit:g} s"
            late = KernelFailure(Verdict.TIMEOUT, f"{doing} {words}; it was killed")
            raise self._flood() or late from error
        except ConnectionError as error:
            raise self._death(doing) from error
        except protocol.WireSizeError as error:
            raise KernelFailure(Verdict.INCORRECT, f"in {doing} its worker sent {error}") from error
        except (protocol.WireError, ValueError) as error:
            raise protocol_violation(str(error) or "an impossible message") from error

    def _flood(self) -> KernelFailure | None:
        if os.fstat(self.log).st_size < int(self.limits.output_mib * (1 << 20)):
            return None
        reason = f"it printed more than {self.limits.output_mib:g} MiB (harness.output_mib)"
        return KernelFailure(Verdict.REJECTED, reason)

    def _death(self, doing: str) -> KernelFailure:
        if self.stopped.is_set():
            raise StoppedError("the worker pool was closed")
        readable, _, _ = select.select([self.status_fd], [], [], 5.0)
        text = os.read(self.status_fd, 32) if readable else b""
        self._has_ended = bool(text)
        if not readable and self.process.exists():
            return KernelFailure(Verdict.REJECTED, f"it closed its channel and lived on in {doing}")
        if not text:
            raise InfrastructureError(f"a worker and the fork server ended in {doing}")
        if flood := self._flood():
            return flood
        status = int(text)
        if status == -signal.SIGKILL and memory_kills.count() > self._memory_kills:
            raise InfrastructureError(f"the machine ran out of memory, and the system killed a worker in {doing}")
        if status == -signal.SIGSYS:  # from the filter of system calls
            reason = f"it made a forbidden system call in {doing} (a new process, tracing, mounting ...)"
            return KernelFailure(Verdict.REJECTED, reason)
        ended = signal_name(-status) if status < 0 else f"its process ended by itself (exit status {status})"
        return KernelFailure(Verdict.CRASHED, f"{ended} in {doing}", (self.log_tail(),))

    def _exchange(self, data: bytes, count: int, limit_s: float) -> bytearray:
        """Send bytes to a worker in its row; return its answer. Raises TimeoutError, ConnectionError."""
        self.sock.settimeout(limit_s)
        self.sock.sendall(data)
        return protocol.read(self.sock, count, time.monotonic() + limit_s)

    def _continue(self) -> None:
        with contextlib.suppress(OSError):  # the next receive reports the failure
            self.sock.settimeout(TRANSFER_TIMEOUT_S)
            self.sock.sendall(b"g")


def _of_kernel(line: str) -> str:
    """Return a line of a traceback as the kernel's author knows it; empty for what is the evaluator's own."""
    return "" if any(ours in line for ours in OURS) else FRAME.sub(r'File "kernel.py", line \1', line)
