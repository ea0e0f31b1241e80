"""One worker holding one kernel, as the verifier holds it: requests, time limits, what its death means."""

import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernel_scientist.compile.extension import Request
from kernel_scientist.compile.request import MOST_BUILDS
from kernel_scientist.records.errors import InfrastructureError, StoppedError
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import process, protocol
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.sandbox.process import Process, signal_name
from kernel_scientist.workers.call import Call
from kernel_scientist.workers.native import Glimpse, Look, NativeHarness
from kernel_scientist.workers.shared_memory import SharedMemory
from kernel_scientist.workers.validation import LARGEST, build_request, readings, unexpected

START_TIMEOUT_S = 120
TRANSFER_TIMEOUT_S = 60
LOG_TAIL = 2000
BUSY_NS = 30_000
"""CPU time before the gate beyond which a worker does not just wait; it is charged. Who works there, while inputs are
written, fetches them into the caches, computes ahead, or disturbs others."""
PATIENCE_S, BYTES_PER_S = 0.1, 200 << 20
"""What each answer may take on average, and for the bytes that go to and fro, besides an allowance for all answers of a
worker together: as long as one call may take."""
SHOWN = -1
"""In place of a worker's number: its outputs lie in a GPU's memory, and it shows pieces of them when it is asked."""
SO_PASSCRED, SCM_CREDENTIALS = 16, 2

Answer = tuple[protocol.Header, list[bytearray]]
Build = Callable[[Request], tuple[Path | None, str]]
"""Compile a request; return (path, "") or (None, the compiler's words)."""


class Session:
    """A worker. Everything it says is data; what does not fit is a KernelFailure."""

    def __init__(
        self,
        sock: socket.socket,
        pid: int,
        log: int,
        status_fd: int,
        limits: Harness,
        stopped: threading.Event,
        inputs: SharedMemory,
        native: NativeHarness,
    ) -> None:
        self.sock, self.pid, self.log, self.status_fd, self.limits = sock, pid, log, status_fd, limits
        self.stopped, self.inputs, self.native = stopped, inputs, native
        self.digests: dict[int, int] = {}
        """Per slot, what the worker said of its output before it was asked for it."""
        self.untouched: dict[int, int] = {}
        """On a GPU, per slot, the digest of what a kernel may not write."""
        self.glimpses: dict[int, Glimpse] = {}
        """Per slot, what the verifier saw of its output when the bell had rung."""
        self._readable = 0
        """The worker's number, if the system lets its memory be read."""
        self.layers: tuple[str, ...] = ()
        self.on_gpu = False
        self.process: Process | None = None
        """The worker's number outside all namespaces, as the system told it."""
        self._overdue_s = 0.0
        """How much longer than on average this worker has taken for its answers, calls of the kernel not counted."""

    def greet(self, seed: tuple[int, int] = (0, 0)) -> None:
        """Wait until the worker is in its sandbox; learn from the system who it is. `seed`: see `masks`."""
        try:
            self.sock.settimeout(START_TIMEOUT_S)
            if self.on_gpu:
                self.sock.sendall(struct.pack("<QQ", *seed))
            _, ancillary, _, _ = self.sock.recvmsg(1, socket.CMSG_SPACE(12), socket.MSG_PEEK)
            hello, _ = protocol.receive(self.sock, START_TIMEOUT_S)
        except (protocol.WireError, OSError) as error:
            raise InfrastructureError(f"a worker did not start: {error}; {self.log_tail()}") from error
        self.layers = tuple(hello.get("sandbox", []))
        for level, kind, data in ancillary:
            number = struct.unpack("iii", data)[0] if (level, kind) == (socket.SOL_SOCKET, SCM_CREDENTIALS) else 0
            if number > 0:
                self.process = Process(number)
                self._readable = number if self.native.can_peek(number) else 0
        if self.on_gpu:
            self._readable = SHOWN

    def load(self, source: str, build: Build) -> None:
        """Import the kernel's file in the worker, building what it asks for."""
        self._send({"op": "load", "source": source})
        deadline = time.monotonic() + self.limits.import_timeout_s
        builds, latest = 0, deadline + 2 * self.limits.build_timeout_s
        while True:
            left_s = max(0.01, deadline - time.monotonic())
            reply, _ = self._receive(left_s, "its import", longest=protocol.MAX_HEADER)
            if reply["op"] != "build":
                break
            start = time.monotonic()
            path, log = build(build_request(reply))
            deadline += time.monotonic() - start  # the builder has its own limit ...
            builds += 1
            if builds > MOST_BUILDS:
                raise KernelFailure(Verdict.REJECTED, f"its import asked for more than {MOST_BUILDS} builds")
            if deadline > latest:  # ... and so have all builds together
                raise KernelFailure(Verdict.TIMEOUT, f"the {builds} builds of its import took too long together")
            self._send({"op": "built", "log": log}, [path.read_bytes()] if path else [])
        self._expect(reply, "loaded", "in its import")

    def prepare(self, messages: Mapping[int, tuple[protocol.Header, Sequence[protocol.Buffer]]]) -> None:
        """Tell the worker, by slot, what its next inputs look like and where they will be."""
        items = [{"slot": slot, "data": data, "buffers": len(own)} for slot, (data, own) in messages.items()]
        buffers = [buffer for _, own in messages.values() for buffer in own]
        self._ask({"op": "prepare", "items": items}, buffers, "ready", TRANSFER_TIMEOUT_S, "receiving its inputs")

    def go(
        self,
        slots: Sequence[int],
        arm: Callable[[], Sequence[int]],
        limit_s: float | None = None,
        look: Look | None = None,
    ) -> Call:
        """Make the timed calls, one per slot; `arm` writes their inputs when the worker stands before the gate.

        For a GPU it returns keys instead, which the worker gets when the clock runs: the sweep's, then a pair per slot.
        After a single call the worker comes to rest, and what goes on until then is charged. Raises KernelFailure also
        when the output changes meanwhile. `limit_s`: instead of `harness.call_timeout_s` for each.
        """
        limit_s = limit_s or self.limits.call_timeout_s * len(slots)
        asked = self._cpu()
        self._send({"op": "go", "slots": list(slots)})
        self._require_waiting()
        waiting = self._cpu()
        keys, clock = arm(), self.process.clock if self.process is not None and waiting is not None else 0
        start = time.monotonic_ns()
        try:
            row = self.native.row(self.sock.fileno(), limit_s, self._readable, keys, clock, look)
        except TimeoutError as error:
            raise self._late("its call", limit_s) from error
        except ConnectionError as error:
            raise self._death("in its call") from error
        except ValueError as error:
            raise KernelFailure(
                Verdict.REJECTED, "its worker broke the protocol: its output is not where it says"
            ) from error
        cpu_after, span = self._cpu(), time.monotonic_ns() - start
        reply, _ = self._receive(self.limits.call_timeout_s, "its call")
        self._expect(reply, "done", "in its call")
        seen = readings(reply, len(slots))
        if min(r.ns for r in seen) <= 0 or sum(r.ns for r in seen) > row.ns:
            said = ", ".join(f"{r.ns} ns" for r in seen[:3])
            raise KernelFailure(
                Verdict.REJECTED, "its clock is impossible", (f"worker {said}; verifier {row.ns} ns for the same call",)
            )
        if any(r.event_ns > (row.ns if self.on_gpu else 0) for r in seen):
            raise KernelFailure(Verdict.REJECTED, "its worker tells of events on a GPU that cannot be")
        self.digests[slots[0]], self.glimpses[slots[0]] = row.digest, row.glimpse
        spent = cpu_after - row.cpu_ns if row.cpu_ns and cpu_after is not None else None
        busy = row.cpu_ns - waiting if row.cpu_ns and waiting is not None else 0
        late = self._rested(reply, row.glimpse) if len(slots) == 1 else 0
        idle, late = (busy, late) if busy <= BUSY_NS else (0, late + busy)
        ready = waiting - asked if waiting is not None and asked is not None else 0
        return Call(seen, row.ns, row.before_ns, row.after_ns, spent, span, late, idle, ready, row.swept)

    def fetch(self, limit: int, slot: int = 0) -> Answer:
        """Return what the last call returned: its description and, up to so many, its bytes."""
        request = {"op": "fetch", "slot": slot}
        reply, buffers = self._ask(request, [], "output", TRANSFER_TIMEOUT_S, "handing over its output", limit)
        if self.on_gpu and reply.get("inputs") != self.untouched.get(slot):
            raise KernelFailure(Verdict.INCORRECT, "it wrote to inputs that it may only read, or beside them")
        if not isinstance(reply.get("data"), dict):
            raise KernelFailure(Verdict.REJECTED, "its worker broke the protocol: an output without a description")
        return reply["data"], buffers

    def observe(self, mute: bool, keys: Sequence[int], slot: int = 0) -> dict[str, Any]:
        """Make one untimed call under observation; see `observation`. `keys`: as for `go`."""
        request = {"op": "observe", "slot": slot, "mute": mute, "keys": list(keys)}
        self._send(request)
        reply, _ = self._receive(self.limits.call_timeout_s, "its observed call")
        self._expect(reply, "observed", "in its observed call")
        return reply

    @property
    def sees(self) -> bool:
        """Whether the verifier can look at outputs where they lie."""
        return self._readable != 0

    def borrowed(self, slots: Sequence[int], places: Sequence[tuple[int, int]]) -> bool:
        """Whether something of these places lies in the inputs' memory, and not in what is lent for outputs."""
        if self._readable <= 0:
            return False
        found = process.parts(self._readable, self.inputs.descriptor, places)
        return any(not any(self.inputs.lent(slot, *part) for slot in slots) for part in found)

    def seal(self) -> None:
        """Let the worker start no program any more. Raises KernelFailure when one that it started is still there."""
        before = max((filters for filters, _ in self._threads()), default=0)
        self._ask({"op": "seal"}, [], "sealed", TRANSFER_TIMEOUT_S, "being sealed")
        threads = self._threads()
        if not threads or min(filters for filters, _ in threads) <= before:
            raise KernelFailure(Verdict.REJECTED, "it did not let itself be sealed")
        if any(children for _, children in threads):
            raise KernelFailure(Verdict.REJECTED, "what it had started while it was built is still running")

    def _threads(self) -> list[tuple[int, bool]]:
        return self.process.threads() if self.process is not None else []

    def alive(self) -> bool:
        """Whether the worker has not ended."""
        return not select.select([self.status_fd], [], [], 0)[0]

    def sample(self, programs: int) -> None:
        """Have only so many programs of each launch interpreted from here on; outputs say nothing then."""
        request = {"op": "sample", "programs": programs}
        self._ask(request, [], "sampled", TRANSFER_TIMEOUT_S, "being told how much to run")

    def watched(self) -> protocol.Header:
        """Return what an interpreted kernel did to memory; see `inspection.memory`."""
        return self._ask({"op": "watched"}, [], "report", TRANSFER_TIMEOUT_S, "its report on memory")[0]

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

    def _rested(self, reply: protocol.Header, glimpse: Glimpse) -> int:
        """Return for how many ns something went on after a call."""
        late, unchanged = reply.get("late_ns"), reply.get("unchanged")
        if type(late) is not int or not 0 <= late <= LARGEST:
            raise KernelFailure(Verdict.REJECTED, "its worker broke the protocol: no time of coming to rest")
        lasts = self._readable == SHOWN or not glimpse or glimpse.lasts(self.native, self._readable)
        if unchanged is not True or not lasts:
            raise KernelFailure(Verdict.REJECTED, "its output changed after it had returned")
        return late

    def _allowance_s(self) -> float:
        """Return how long the worker may still keep the laboratory waiting."""
        return max(self.limits.call_timeout_s - self._overdue_s, 0.01)

    def _cpu(self) -> int | None:
        return self.process.cpu_ns() if self.process is not None else None

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
        """Wait until the worker stands before the gate."""
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
            raise KernelFailure(Verdict.REJECTED, "its worker broke the protocol: it does not wait for its call")

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
            raise StoppedError("the workshop was closed")
        status = self._status()
        if status is None and self.process is not None and self.process.exists():
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
