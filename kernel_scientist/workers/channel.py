"""The conversation with one worker: messages, time limits, and what its silence or death means."""

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Generator

from kernel_scientist.records.errors import InfrastructureError, StoppedError
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.sandbox.process import Process, signal_name
from kernel_scientist.workers.validation import unexpected

TRANSFER_TIMEOUT_S = 60
LOG_TAIL = 2000
PATIENCE_S, BYTES_PER_S = 0.1, 200 << 20
"""Time that each answer may take on average, and transfer rate; all answers of a worker together may exceed that by as
long as one call may take."""

Answer = tuple[protocol.Header, list[bytearray]]


class Channel:
    """A socket to a worker, its log and its exit status. What goes wrong there is a KernelFailure."""

    def __init__(
        self, sock: socket.socket, log: int, status_fd: int, limits: Harness, stopped: threading.Event
    ) -> None:
        self.sock, self.log, self.status_fd, self.limits, self.stopped = sock, log, status_fd, limits, stopped
        self.process = Process(0)
        """The worker's process, by its number outside all namespaces; 0 until it has sent its first message."""
        self._overdue_s = 0.0
        """By how much this worker's answers have exceeded their average, calls of the kernel not counted."""

    def alive(self) -> bool:
        """Whether the worker has not ended."""
        return not select.select([self.status_fd], [], [], 0)[0]

    def log_tail(self) -> str:
        """The end of what the worker printed."""
        size = os.fstat(self.log).st_size
        text = os.pread(self.log, LOG_TAIL, max(0, size - LOG_TAIL)).decode(errors="replace").strip()
        return f"its last output: {text}" if text else "it printed nothing"

    def _ask(
        self,
        request: protocol.Header,
        buffers: list[protocol.Buffer],
        answer: str,
        timeout_s: float,
        doing: str,
        limit: int = 0,
    ) -> Answer:
        start = time.monotonic()
        self._send(request, buffers)
        reply, received = self._receive(min(timeout_s, self._allowance_s()), doing, limit)
        moved = sum(len(b) for b in (*buffers, *received))
        self._overdue_s += time.monotonic() - start - PATIENCE_S - moved / BYTES_PER_S
        self._expect(reply, answer, f"during {doing}")
        return reply, received

    def _allowance_s(self) -> float:
        """Return how long the worker may still keep the evaluator waiting."""
        return max(self.limits.call_timeout_s - self._overdue_s, 0.01)

    def _send(self, header: protocol.Header, buffers: list[protocol.Buffer] | None = None) -> None:
        self.sock.settimeout(TRANSFER_TIMEOUT_S)
        try:
            protocol.send(self.sock, header, buffers)
        except protocol.WireTimeoutError as error:
            raise KernelFailure(Verdict.TIMEOUT, "its worker stopped reading") from error
        except protocol.WireClosedError as error:
            raise self._death("before it could be asked") from error

    def _receive(self, timeout_s: float, doing: str, limit: int = 0, longest: int = protocol.MAX_ANSWER) -> Answer:
        try:
            reply, buffers = protocol.receive(self.sock, timeout_s, limit, longest)
        except protocol.WireTimeoutError as error:
            raise self._late(doing, timeout_s) from error
        except protocol.WireClosedError as error:
            raise self._death(f"during {doing}") from error
        except protocol.WireSizeError as error:
            verdict = Verdict.INCORRECT if limit else Verdict.REJECTED
            raise KernelFailure(verdict, f"during {doing} its worker sent {error}") from error
        except protocol.WireError as error:
            raise KernelFailure(Verdict.REJECTED, f"its worker broke the protocol: {error}") from error
        if not isinstance(reply.get("op"), str):
            raise KernelFailure(Verdict.REJECTED, "its worker broke the protocol: a message without an op")
        return reply, buffers

    def _require_waiting(self) -> None:
        """Wait until the worker is at the start barrier."""
        start, limit_s = time.monotonic(), self._allowance_s()
        self.sock.settimeout(limit_s)
        try:
            byte = self.sock.recv(1)
        except TimeoutError as error:
            raise self._late("getting ready for its call", limit_s) from error
        except OSError:
            byte = b""
        self._overdue_s += time.monotonic() - start - PATIENCE_S
        if not byte:
            raise self._death("before its call")
        if byte != b"r":
            raise KernelFailure(
                Verdict.REJECTED, "its worker broke the protocol: it does not wait at the start barrier"
            )

    def _late(self, doing: str, limit_s: float) -> KernelFailure:
        if self._flooded():
            return KernelFailure(Verdict.REJECTED, self._flood_words())
        return KernelFailure(Verdict.TIMEOUT, f"{doing} took longer than {limit_s:g} s; it was killed")

    def _expect(self, reply: protocol.Header, op: str, when: str) -> None:
        if self._flooded():
            raise KernelFailure(Verdict.REJECTED, self._flood_words())
        if reply["op"] != op:
            raise unexpected(reply, op, when)

    def _flooded(self) -> bool:
        return os.fstat(self.log).st_size >= int(self.limits.output_mib * (1 << 20))

    def _flood_words(self) -> str:
        return f"it printed more than {self.limits.output_mib:g} MiB (harness.output_mib)"

    def _death(self, when: str) -> KernelFailure:
        if self.stopped.is_set():
            raise StoppedError("the worker pool was closed")
        status = self._status()
        if status is None and self.process.exists():
            return KernelFailure(Verdict.REJECTED, f"it closed its channel and lived on {when}")
        if status is None:
            raise InfrastructureError(f"a worker and the parent that watched it are gone {when}")
        if self._flooded():
            return KernelFailure(Verdict.REJECTED, self._flood_words())
        if status == -31:  # SIGSYS: the system-call filter
            return KernelFailure(
                Verdict.REJECTED, f"it made a forbidden system call {when} (a new process, tracing, mounting ...)"
            )
        if status < 0:
            words = f"{signal_name(-status)} {when}"
        else:
            words = f"its process ended by itself {when} (exit status {status})"
        return KernelFailure(Verdict.CRASHED, words, (self.log_tail(),))

    def _status(self) -> int | None:
        readable, _, _ = select.select([self.status_fd], [], [], 5.0)
        text = os.read(self.status_fd, 32).decode() if readable else ""
        return int(text) if text else None

    @contextlib.contextmanager
    def _natively(self, doing: str, limit_s: float) -> Generator[None]:
        """Turn what goes wrong between two native sides into a KernelFailure."""
        try:
            yield
        except TimeoutError as error:
            raise self._late(doing, limit_s) from error
        except ConnectionError as error:
            raise self._death("in its call") from error
        except ValueError as error:
            raise KernelFailure(Verdict.REJECTED, "its worker broke the protocol: an impossible message") from error

    def _continue(self) -> None:
        with contextlib.suppress(OSError):  # the next receive says what happened
            self.sock.settimeout(TRANSFER_TIMEOUT_S)
            self.sock.sendall(b"g")
