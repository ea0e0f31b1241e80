"""A worker's main loop: it loads one kernel, calls it on the inputs it receives, and answers with data only.

It has no seed, no expected output and no tolerance, and it cannot distinguish a checked call from a timed one.
Imports only the standard library and torch (and triton when the kernel does); the process is a fork of `fork_server`.
Messages (`sandbox.protocol`):

    load     {source, files}     -> build ... -> loaded | failed
    prepare  {items}             -> ready           places of the inputs by slot; values are written before `go`
    go       {slots, warm, ...}  -> done {...}      one row: a call per slot, after an untimed one on the slot `warm`.
                                                    Before the answer, natively (`shim/`): start barrier,
                                                    completion signal, copies of the outputs
    observe  {slot, mute}        -> observed {...}  one observed call: counts of library operations and native calls
    seal                         -> sealed          compilation has ended: no program can be started from now on
    execute  {part}              -> chosen          how the machine executes the launches of the next calls
    memory                       -> report {...}    what executed launches did to memory since the last report
"""

import contextlib
import faulthandler
import importlib.util
import itertools
import os
import socket
import sys
import traceback
from types import ModuleType
from typing import Any

import torch

from kernel_scientist.compilers import cpp, extension, gpumode_compat
from kernel_scientist.compilers.request import MOST_BUILDS, CompileError, Request
from kernel_scientist.sandbox import protocol, seccomp
from kernel_scientist.workers.native import NativeHarness
from kernel_scientist.workers.untrusted import op_profile, outputs
from kernel_scientist.workers.untrusted.buffers import DeviceInbox, Inbox

CHANNEL, INBOX, DEVICE_INBOX = 3, 4, 5
"""Descriptors of the socket and of the memory shared with the evaluator; the last one on a GPU."""
REPORT = 4000
"""Most characters of a traceback that is sent."""
OWN_REQUESTS = ("prepare", "seal", "execute", "memory")
"""Requests whose answers run nothing of the kernel's file."""
MACHINE = os.path.join("kernel_scientist", "gpu", "machine")
MEETING = ("triton_launches.py", "worker_setup.py", "_dispatched")
"""Files and functions of the machine that call what a kernel passes, or torch for it: their errors may be its own."""
MISTAKES = (TypeError, AttributeError, LookupError, NameError, AssertionError)
"""Errors that are no refusals: in code of ours they are mistakes of ours."""
Answer = tuple[protocol.Header, list[protocol.Buffer]]


class Worker:
    """One kernel in one process. A method with a request's name answers it."""

    def __init__(self, sock: socket.socket, settings: dict[str, Any], native: NativeHarness) -> None:
        self.sock, self.native = sock, native
        self.file = os.path.join(os.getcwd(), "kernel.py")
        self.module: ModuleType | None = None
        self.on_gpu: bool = settings["on_gpu"]
        native.bind(torch.Tensor)
        self.inbox = self.host = Inbox(INBOX)
        if self.on_gpu:
            self.inbox = DeviceInbox(DEVICE_INBOX, settings["device_bytes"], settings["limits"]["device"], native)
        faulthandler.enable()  # where in the kernel's file, into the worker's log
        native.tell_faults(self.host.address)
        self.data: dict[int, Any] = {}
        self.libraries = 0
        self.machine: Any = None
        """What executes a GPU's code, for a GPU that is not here."""
        if settings["machine"] is not None:
            from kernel_scientist.gpu.machine.worker_setup import WorkerMachine  # imported before the fork

            self.machine = WorkerMachine(settings["machine"], self.host.close)

    def serve(self) -> None:
        """Answer requests until the evaluator closes the socket."""
        while True:
            try:
                request, buffers = protocol.receive(self.sock, None)
            except ConnectionError:
                return
            try:
                reply, out = getattr(self, f"_{request['op']}")(request, buffers)
            except BaseException as error:
                name, trace = type(error).__name__, self._traceback(error)[-REPORT:]
                own = request["op"] in OWN_REQUESTS or _is_own(error)
                said = {"error": name, "message": str(error)[:REPORT] or name, "traceback": trace}
                reply = {"op": "failed", "own": own, **said}
                out = []
            protocol.send(self.sock, reply, out)

    def _load(self, request: protocol.Header, _: list[bytearray]) -> Answer:
        source: str = request["source"]
        with open(self.file, "w") as file:  # Triton reads a kernel's source back through its file
            file.write(source)
        spec = importlib.util.spec_from_file_location("kernel", self.file)
        assert spec is not None and spec.loader is not None
        module = sys.modules["kernel"] = importlib.util.module_from_spec(spec)
        extension.replace_torchs(source)
        gpumode_compat.provide(request["files"])
        pretending = self.machine.pretending() if self.machine else contextlib.nullcontext()
        with cpp.built_by(self._build), pretending:
            spec.loader.exec_module(module)
        if not callable(getattr(module, "custom_kernel", None)):
            raise AttributeError("the kernel's file defines no custom_kernel(data)")
        if self.machine:
            module.__dict__["custom_kernel"] = self.machine.wrapped(module.custom_kernel)
        self.module = module
        return {"op": "loaded"}, []

    def _traceback(self, error: BaseException) -> str:
        """Return an error's traceback, from the first line of the kernel's file if there is one."""
        frame = error.__traceback__
        while frame is not None and frame.tb_frame.f_code.co_filename != self.file:
            frame = frame.tb_next
        if frame is None and not isinstance(error, SyntaxError):
            frame = error.__traceback__
        return "".join(traceback.format_exception(type(error), error, frame)).replace(self.file, "kernel.py")

    def _build(self, request: Request) -> str:
        """Request a shared object from the evaluator's builder; return its path."""
        if self.libraries == MOST_BUILDS:
            raise CompileError(f"the kernel's file asks for more than {MOST_BUILDS} builds")
        self.libraries += 1  # like the evaluator, count failed builds too
        protocol.send(self.sock, {"op": "build", "request": request._asdict()})
        reply, buffers = protocol.receive(self.sock, None)
        if not buffers:
            raise CompileError(reply.get("log", "the build failed"))
        path = os.path.join(os.getcwd(), f"library{self.libraries}.so")
        with open(path, "wb") as file:
            file.write(buffers[0])
        return path

    def _prepare(self, request: protocol.Header, _: list[bytearray]) -> Answer:
        self.host.forget()
        for item in request["items"]:
            self.data[int(item["slot"])] = self.inbox.decode(item["data"])
        return {"op": "ready"}, []

    def _go(self, request: protocol.Header, _: list[bytearray]) -> Answer:
        assert self.module is not None
        slots: list[int] = request["slots"]
        inputs = [self._inputs(slot) for slot in slots]
        kernel, earlier = self.module.custom_kernel, self._inputs(request["warm"])
        offset, room = request["outbox"]
        outbox = (self.inbox.address + offset, room)
        row = (kernel, earlier, inputs, CHANNEL, self.host.address, outbox, request["queued"])
        returned, reading, placed = self.native.row(*row)
        out: list[protocol.Buffer] = []
        trees = [self._describe(output, slot, out, placed) for slot, output in zip(slots, returned, strict=True)]
        return {"op": "done", "reading": reading, "outputs": trees}, out

    def _inputs(self, slot: int | None) -> Any:
        """Return a slot's inputs; objects among them are new ones of the problem's classes."""
        return gpumode_compat.with_objects(self.data.get(slot) if slot is not None else None)

    def _describe(self, output: Any, slot: int, out: list[protocol.Buffer], placed: bool = False) -> protocol.Header:
        """Describe an output. Its bytes are appended to `out`, unless the evaluator has copied them (`placed`)."""
        numbers = itertools.count()

        def copy(tensor: torch.Tensor) -> int:
            if not placed:
                out.append(outputs.copied(tensor, self.native, self.on_gpu))
            return next(numbers)

        return outputs.describe(output, outputs.tensors(self.data[slot]), copy)

    def _observe(self, request: protocol.Header, _: list[bytearray]) -> Answer:
        assert self.module is not None
        slot, out = request["slot"], list[protocol.Buffer]()
        observed, output = op_profile.observe(self.module.custom_kernel, self._inputs(slot), request["mute"])
        if self.on_gpu:
            self.native.gpu_synchronize()
        return {"op": "observed", **observed, "outputs": [self._describe(output, slot, out)]}, out

    def _seal(self, *_: object) -> Answer:
        seccomp.seal(self.on_gpu)
        return {"op": "sealed"}, []

    def _execute(self, request: protocol.Header, _: list[bytearray]) -> Answer:
        self.machine.choose(**request["part"])
        return {"op": "chosen"}, []

    def _memory(self, *_: object) -> Answer:
        return {"op": "report", **self.machine.report()}, []


def _is_own(error: BaseException) -> bool:
    """Whether the code that executes launches made a mistake, so that the kernel is not at fault."""
    code = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)][-1]
    folder, file = os.path.split(code.co_filename)
    inside = folder.endswith(MACHINE) and file not in MEETING and code.co_name not in MEETING
    return isinstance(error, MISTAKES) and inside


def run(sock: socket.socket, settings: dict[str, Any], native: NativeHarness) -> None:
    """Enter the sandbox and serve; never returns to the fork server's code."""
    layers = seccomp.confine_worker(seccomp.Limits(**settings["limits"]))
    worker = Worker(sock, settings, native)
    protocol.send(sock, {"op": "hello", "sandbox": list(layers), "address": worker.inbox.address})
    worker.serve()
    os._exit(0)
