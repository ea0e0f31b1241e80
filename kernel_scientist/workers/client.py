"""The evaluator's client of one worker: the requests that a worker answers."""

from __future__ import annotations

import contextlib
import errno
import signal
import socket
import struct
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from kernel_scientist.compilers.request import MOST_BUILDS, Request
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.sandbox.process import Process
from kernel_scientist.workers.channel import FAULT, FRAME, TRANSFER_TIMEOUT_S, Channel
from kernel_scientist.workers.native import MOST_THREADS, NativeHarness, Place, Reading, Stopped
from kernel_scientist.workers.places import Places
from kernel_scientist.workers.shared_memory import SharedMemory
from kernel_scientist.workers.validation import build_request, leaves, output_trees, protocol_violation, reading

START_TIMEOUT_S = 120
SO_PASSCRED, SCM_CREDENTIALS = 16, 2

Build = Callable[[Request], tuple[Path | None, str]]
"""Compile a request; return (path, "") or (None, the compiler's log)."""


class Output(NamedTuple):
    """Output of a call: the worker's description of it, and the bytes of each tensor."""

    tree: protocol.Header
    buffers: list[protocol.Values]


@dataclass(frozen=True)
class ExecutionMode:
    """How the machine executes launches: what of them, and what it reports."""

    seconds: float = 0.0
    """Execute only so many workgroups of each launch as these CPU seconds suffice for; 0: all."""
    tuned: tuple[tuple[str, Mapping[str, str]], ...] = ()
    """Kernel and constants of the launches that an autotuner makes."""
    counted: bool = False
    """Whether the machine counts what launches do."""
    checked: bool = False
    """Whether these are checking runs; without `tuned` an autotuner takes another configuration in each call."""
    descending: bool = False
    """Whether matrix instructions add their products in descending order."""

    def message(self) -> protocol.Header:
        """Return the record as a request's fields."""
        tuned = [(name, dict(constants)) for name, constants in self.tuned]
        kind = {"counted": self.counted, "checked": self.checked, "descending": self.descending}
        return {"seconds": self.seconds, "tuned": tuned, **kind}


IN_TORCH = " in _dispatched\n"
"""A frame of a traceback: `Allocations` runs an operation of torch."""


class InputAccessError(KernelFailure):
    """A kernel stored to an input that it may only read, or its host code accessed one in a GPU's memory."""


@dataclass(frozen=True)
class Row:
    """Measurements of a row of calls on distinct inputs, by the evaluator's clock and by the worker's own."""

    calls: int
    wall_ns: int
    """From the start barrier to the completion signal, by the evaluator's clock."""
    reading: Reading


@dataclass(eq=False)
class WorkerClient(Channel):
    """Client of one worker. Its messages are only data; an invalid one raises KernelFailure."""

    pid: int
    """The worker's process number in the fork server's namespace."""
    shared: SharedMemory
    """Memory with the start barrier."""
    inputs: Places
    """Memory with inputs and outputs: the same one, or on a GPU that on the device."""
    native: NativeHarness
    programs: bool = field(default=False, kw_only=True)
    """Whether the worker may start programs until it is sealed."""
    simulates_gpu: bool = field(default=False, kw_only=True)
    """Whether a machine executes the launches in it."""
    can_stop: bool = field(default=False, init=False)
    """Whether this process may stop the worker's threads (ptrace)."""
    precedes: bool = field(default=False, init=False)
    """Whether it runs before all other programs during a timed row, so that these do not interrupt it."""
    layers: tuple[str, ...] = field(default=(), init=False)
    _slots: tuple[int, ...] = field(default=(), init=False)
    """Slots of the inputs of the last calls."""
    _address: int = field(default=0, init=False)
    """Address at which the worker has mapped the memory with inputs and outputs."""

    def greet(self) -> None:
        """Wait until the worker is in its sandbox, and get its process number from the operating system."""
        try:
            self.sock.settimeout(START_TIMEOUT_S)
            _, ancillary, _, _ = self.sock.recvmsg(1, socket.CMSG_SPACE(12), socket.MSG_PEEK)
            hello, _ = protocol.receive(self.sock, START_TIMEOUT_S)
            credentials = next(data for _, kind, data in ancillary if kind == SCM_CREDENTIALS)
        except (protocol.WireError, OSError, StopIteration) as error:
            raise InfrastructureError(f"a worker did not start: {error}; {self.log_tail()}") from error
        self.layers, self._address = tuple(hello.get("sandbox", [])), int(hello.get("address", 0))
        self.process = Process(struct.unpack("iii", credentials)[0])
        with self.paused() as stopped:
            self.can_stop = stopped.allowed

    def load(self, source: str, build: Build, files: Mapping[str, str] | None = None) -> None:
        """Import the kernel's file in the worker, and build the extensions that it requests.

        files: text of the problem's Python files by module name; the kernel may import them.
        """
        self._send({"op": "load", "source": source, "files": dict(files or {})})
        limit = self._limit(self.limits.import_timeout_s)
        builds, building_s = 0, 0.0
        while True:
            reply, _ = self._message(limit, "its import")
            if reply.get("op") != "build":
                break
            start = time.monotonic()
            path, log = build(build_request(reply))
            duration_s = time.monotonic() - start
            limit.exempt(duration_s)  # each build has its own limit ...
            building_s += duration_s
            builds += 1
            if builds > MOST_BUILDS:
                raise KernelFailure(Verdict.REJECTED, f"its import requested more than {MOST_BUILDS} builds")
            if building_s > 2 * self.limits.build_timeout_s:  # ... and so has their sum
                raise KernelFailure(Verdict.TIMEOUT, f"the {builds} builds of its import took too long together")
            self._send({"op": "built", "log": log}, [path.read_bytes()] if path else [])
        self._expect(reply, "loaded", "its import")

    def prepare(self, places: Mapping[int, protocol.Header]) -> None:
        """Send the forms and places of the worker's next inputs, by slot."""
        items = [{"slot": slot, "data": data} for slot, data in places.items()]
        self._ask({"op": "prepare", "items": items}, "ready", "receiving its inputs")

    def run_row(
        self,
        slots: Sequence[int],
        write: Callable[[], None],
        inspect: Callable[[], None],
        most_bytes: int,
        limit_s: float | None = None,
        warm: int | None = None,
        queued: bool = False,
    ) -> tuple[Row, list[Output]]:
        """Make a timed row of calls, one per slot; return the measurements and the outputs.

        `write` writes the inputs when the worker waits at the barrier, its other threads stopped; `inspect` looks at
        memory when it has ended, they stopped again. `most_bytes`: of all outputs together. `limit_s`: instead of
        `harness.call_timeout_s` for each call. `warm`: slot of an untimed call before it. `queued`: queue a GPU's calls
        behind a delay. Raises KernelFailure.
        """
        limit_s = limit_s or self.limits.call_timeout_s * len(slots)
        self._slots = (*slots, *([] if warm is None else [warm]))
        start, room = self.inputs.outbox() if self.on_gpu else (0, 0)
        outbox = start, min(room, most_bytes)
        self._send({"op": "go", "slots": list(slots), "warm": warm, "queued": queued, "outbox": outbox})
        self._require_waiting(warm is not None)
        barrier = self.sock.fileno(), self.shared.address
        with self.paused(with_main=False) as stopped:
            self._require_stopped(stopped)
            write()
            limit = self._limit(limit_s)
            with self._failures("its call", limit), self._precedence():
                if self.on_gpu:
                    self.native.settle(*barrier, TRANSFER_TIMEOUT_S)
                    stopped.settled = True
                completion = self.native.run(*barrier, limit.left_s, stopped)
        with self.paused(with_main=False):
            with self._failures("its call", limit):
                buffers = self._copied(slots, completion.places, most_bytes)
            inspect()
        self._continue()
        reply, sent = self._receive("done", self._limit(self.limits.call_timeout_s), "its call", most_bytes)
        row = Row(len(slots), completion.wall_ns, reading(reply))
        return row, _outputs(output_trees(reply, len(slots)), sent if buffers is None else buffers)

    def observe(self, mute: bool, most_bytes: int, slot: int = 0) -> tuple[dict[str, Any], Output]:
        """Make one observed call (`untrusted.op_profile`)."""
        limit, self._slots = self._limit(self.limits.call_timeout_s), (slot,)
        self._send({"op": "observe", "slot": slot, "mute": mute})
        reply, sent = self._receive("observed", limit, "its observed call", most_bytes)
        return reply, _outputs(output_trees(reply, 1), sent)[0]

    @contextlib.contextmanager
    def _precedence(self) -> Generator[None]:
        if not self.precedes:
            yield
            return
        self.process.take_precedence()
        try:
            yield
        finally:
            self.process.give_way()

    def paused(self, with_main: bool = True) -> contextlib.AbstractContextManager[Stopped]:
        """Stop the worker's threads if the operating system allows it; the main thread only if `with_main`."""
        return self.native.stopped(self.process.number, with_main)

    def _require_stopped(self, stopped: Stopped) -> None:
        """Raise KernelFailure if its threads could be stopped before it read the kernel's file, and cannot now."""
        if self.can_stop and stopped.error in (errno.EPERM, errno.E2BIG):
            why = f"it has more than {MOST_THREADS}" if stopped.error == errno.E2BIG else "it forbids it"
            raise KernelFailure(Verdict.REJECTED, f"its threads cannot be stopped while inputs are written: {why}")

    def _death(self, doing: str) -> KernelFailure:
        """Return the failure of a worker that has ended; of a store to a read-only input with input and line, and of
        host code that accesses an input in the memory of a simulated GPU."""
        failure = super()._death(doing)
        crashed = failure.verdict is Verdict.CRASHED and failure.reason.startswith(signal.SIGSEGV.name)
        if self.on_gpu or not crashed:  # a GPU's memory is not write-protected: the host may not touch it at all
            return failure
        at = self.native.fault(self.shared.address) - self._address
        for (slot, _), pages in self.inputs.storages.items():
            content = pages.content
            if not content or slot not in self._slots or not pages.start <= at < pages.start + pages.length:
                continue
            if self.simulates_gpu or content.protected:
                where = "to" if pages.offset <= at < pages.offset + pages.size else "beside"
                found = FRAME.search("".join(failure.evidence).partition(FAULT)[2])
                line = f" (kernel.py, line {found[1]})" if found else ""
                names = " and ".join(map(str, content.items))
                if self.simulates_gpu and not self._is_in_torch():  # the machine itself checks a launch's addresses
                    reason = f"its host code accessed input {names}, which lies in the GPU's memory, in {doing}{line}"
                    return InputAccessError(Verdict.CRASHED, reason, failure.evidence)
                which = f"input {names}, which is" if len(content.items) == 1 else f"inputs {names}, which are"
                reason = f"it wrote {where} {which} read-only, in {doing}{line}"
                return InputAccessError(Verdict.INCORRECT, reason, failure.evidence)
        return failure

    def _is_in_torch(self) -> bool:
        """Whether a worker ended in an operation of torch, to which all inputs are open: it can only have written."""
        return IN_TORCH in self._log_end().partition(FAULT)[2]

    def _copied(
        self, slots: Sequence[int], places: tuple[Place, ...] | None, most_bytes: int
    ) -> list[protocol.Values] | None:
        """Return the bytes of the outputs; None if the worker did not report their addresses.

        On a GPU the worker has copied all of them already, to the outbox of its memory.
        """
        if places is None:
            return None
        total = sum(size for _, size in places)
        if total > most_bytes:
            raise KernelFailure(Verdict.INCORRECT, f"it returned {total} bytes; {most_bytes} at most are read")
        try:
            base = self.inputs.outputs(total)
        except MemoryError as error:
            raise KernelFailure(Verdict.INCORRECT, f"it returned {total} bytes; there is no room: {error}") from error
        offset, copied, buffers = base, self.on_gpu, list[Any]()
        for address, size in places:
            start = address - self._address
            if not self.inputs.holds(start, size):  # the output lies in the worker's private memory
                if not copied:
                    self._exchange(struct.pack("<cq", b"c", base), 1, TRANSFER_TIMEOUT_S)
                start, copied = offset, True
            elif not any(self.inputs.is_output_buffer(slot, start, size) for slot in slots):
                raise KernelFailure(Verdict.INCORRECT, "its output shares the memory of an input")
            buffers.append(self.inputs.read(offset if self.on_gpu else start, size))
            offset += size
        return buffers

    def seal(self) -> None:
        """Forbid the worker to start programs. Raises KernelFailure if one that it started is still running."""
        self._ask({"op": "seal"}, "sealed", "being sealed")
        if self.process.has_children():
            raise KernelFailure(Verdict.REJECTED, "a program that it started during the build is still running")

    def execute(self, part: ExecutionMode) -> None:
        """Tell the machine how to execute the launches of the next calls."""
        self._ask({"op": "execute", "part": part.message()}, "chosen", "choosing workgroups")

    def memory_report(self) -> protocol.Header:
        """Return the report on what executed launches did to memory (`gpu.machine`)."""
        return self._ask({"op": "memory"}, "report", "its report on memory")[0]


def _outputs(trees: Sequence[protocol.Header], buffers: Sequence[protocol.Values]) -> list[Output]:
    """Distribute the buffers of a row over its outputs. Raises KernelFailure when they do not fit."""
    rest, outputs = list(buffers), list[Output]()
    for tree in trees:
        count = len(leaves(tree))
        outputs.append(Output(tree, rest[:count]))
        rest = rest[count:]
    if rest or any(len(output.buffers) != len(leaves(output.tree)) for output in outputs):
        raise protocol_violation("outputs and their bytes do not fit")
    return outputs
