"""The untrusted side: holds one kernel, runs it on what it is sent, answers with data, never with a judgement.

It is given no seed, no expected output, no tolerance, and it cannot tell a checked call from a timed one. Imports
only the standard library and torch (and triton when the kernel does); the process is a fork of `zygote`. Messages
(see `wire`):

    load     {source}              -> build ... -> loaded | failed
    prepare  {items}               -> ready           per slot where inputs will be; they are written before `go`
    go       {slots}               -> done {readings} one call per slot. Before the answer single bytes: the worker
                                                      stands before the gate, the verifier writes the inputs and opens
                                                      it (a GPU's worker gets keys, unmasks its inputs and sweeps
                                                      the caches first), the last call rings the bell, and a single
                                                      one's output is pinned down by its digest (see `native.cpp`),
                                                      then, when the worker has come to rest, copied; the answer says
                                                      what went on meanwhile
    fetch    {slot}                -> output {data}
    observe  {slot, mute, keys}    -> observed {...}  one untimed call: which library operations, which native calls
    seal                           -> sealed          what was to be compiled is: no program may be started any more
    sample   {programs}            -> sampled         of an interpreted launch so many programs run, and no more
    watched                        -> report {...}    what an interpreted kernel did to memory since it was last asked
"""

import contextlib
import importlib.util
import os
import socket
import struct
import sys
import time
import traceback
from types import FunctionType, ModuleType
from typing import Any

import torch

from kernel_scientist.compile import cpp, extension, gpumode_compat
from kernel_scientist.compile.request import MOST_BUILDS, CompileError
from kernel_scientist.sandbox import protocol, seccomp
from kernel_scientist.workers.native import Keys, NativeHarness, Reading
from kernel_scientist.workers.untrusted import op_profile, outputs
from kernel_scientist.workers.untrusted.buffers import GpuInbox, Inbox
from kernel_scientist.workers.untrusted.gpu_runtime import Runtime

CHANNEL, INBOX = 3, 4
"""Descriptors: of the socket, and of the memory shared with the evaluator."""
AMD_SWEEP_BYTES, LEAST_SWEEP_BYTES = 768 << 20, 128 << 20
REPORT = 4000
"""Characters of a traceback that travel back."""


class Worker:
    """One kernel in one process."""

    def __init__(
        self,
        sock: socket.socket,
        settings: dict[str, Any],
        native: NativeHarness,
        runtime: Runtime | None = None,
        seed: Keys = (0, 0),
    ) -> None:
        """`runtime`: on a GPU; `seed`: see `masks`."""
        self.sock, self.native = sock, native
        self.device, self.file = str(settings["device"]), os.path.join(os.getcwd(), "kernel.py")
        self.threads = len(os.sched_getaffinity(0))  # now: a kernel's OpenMP binds this thread to one core later
        self.module: ModuleType | None = None
        self.material = (torch.zeros(1), torch.zeros(1))
        native.bind(torch.Tensor, _exercise, self)
        self.inbox = self.gpu = None
        if runtime is None:
            self.inbox = Inbox(INBOX, int(settings["inputs_bytes"]))
        else:
            from kernel_scientist.workers.untrusted import (
                input_masking,  # triton is imported before the fork where it is needed
            )

            trash = input_masking.Trash(self.device, int(settings["sweep_bytes"]) or sweep_bytes(self.device), seed)
            trash.sweep(0)  # it is compiled now: later no program may be started
            self.gpu = GpuInbox(self.device, native, runtime, trash, input_masking.turn)
            native.bind_gpu(runtime.addresses())
        self.due: list[int] = []
        """Slots whose keys come when the worker is roused."""
        self.unready: Exception | None = None
        """Why they could not be made readable."""
        self.data: dict[int, Any] = {}
        self.returned: dict[int, Any] = {}
        self.snapshots: dict[int, outputs.Snapshot] = {}
        self.last: outputs.Snapshot | None = None
        self.inputs: list[torch.Tensor] = []
        self.rooms: outputs.Rooms = {}
        self.libraries = 0
        self.stage = _stage(settings)

    def serve(self) -> None:
        """Answer until the verifier hangs up."""
        while True:
            try:
                request, buffers = protocol.receive(self.sock, None)
            except protocol.WireClosedError:
                return
            out: list[protocol.Buffer] = []
            try:
                reply = self._answer(request, buffers, out)
            except BaseException as error:
                reply = {"op": "failed", "error": type(error).__name__, "message": _short(error)}
                reply["traceback"] = self._traceback(error)[-REPORT:]
                out = []
            protocol.send(self.sock, reply, out)

    def _answer(
        self, request: protocol.Header, buffers: list[bytearray], out: list[protocol.Buffer]
    ) -> protocol.Header:
        match request["op"]:
            case "load":
                self.module = self._load(request["source"])
                return {"op": "loaded"}
            case "prepare":
                self._prepare(request["items"], buffers)
                return {"op": "ready"}
            case "go":
                return {"op": "done", **self._go(request["slots"])}
            case "fetch":
                inputs = self.gpu.digest(request["slot"]) if self.gpu is not None else 0
                return {"op": "output", "data": self._fetch(request["slot"], out), "inputs": inputs}
            case "observe":
                if self.gpu is not None:
                    self.gpu.unmask([request["slot"]], request["keys"][1:])
                return {"op": "observed", **self._observe(request["slot"], request["mute"])}
            case "seal":
                seccomp.seal()
                return {"op": "sealed"}
            case "sample":
                if self.stage:
                    self.stage.most_programs = int(request["programs"])
                return {"op": "sampled"}
            case "watched":
                return {"op": "report", **(self.stage.report() if self.stage else {})}
            case other:
                raise protocol.WireError(f"unknown request {other!r}")

    def _load(self, source: str) -> ModuleType:
        with open(self.file, "w") as file:  # Triton reads a kernel's source back through its file
            file.write(source)
        spec = importlib.util.spec_from_file_location("kernel", self.file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["kernel"] = module
        cpp.set_builder(self._build)
        gpumode_compat.provide()
        pretending = self.stage.pretending() if self.stage else contextlib.nullcontext()
        try:
            with extension.built_by(self._build, source), pretending:
                spec.loader.exec_module(module)
        finally:
            cpp.set_builder(cpp.too_late)
        if not callable(getattr(module, "custom_kernel", None)):
            raise AttributeError("the kernel's file defines no custom_kernel(data)")
        if self.stage:
            module.__dict__["custom_kernel"] = self.stage.wrapped(module.custom_kernel)
        return module

    def _traceback(self, error: BaseException) -> str:
        """Return what Python says of an error, from the kernel's own lines on, where there are any."""
        place = error.__traceback__
        while place is not None and place.tb_frame.f_code.co_filename != self.file:
            place = place.tb_next
        if place is None and not isinstance(error, SyntaxError):
            place = error.__traceback__
        return "".join(traceback.format_exception(type(error), error, place)).replace(self.file, "kernel.py")

    def _build(self, request: extension.Request) -> str:
        """Ask the verifier's builder for a shared object; return its path."""
        if self.libraries == MOST_BUILDS:
            raise CompileError(f"the kernel's file asks for more than {MOST_BUILDS} builds")
        self.libraries += 1  # also one that is refused: the verifier counts those as well
        protocol.send(self.sock, {"op": "build", "request": request._asdict()})
        reply, buffers = protocol.receive(self.sock, None)
        if not buffers:
            raise CompileError(reply.get("log", "the build failed"))
        path = os.path.join(os.getcwd(), f"library{self.libraries}.so")
        with open(path, "wb") as file:
            file.write(buffers[0])
        return path

    def _prepare(self, items: list[protocol.Header], buffers: list[bytearray]) -> None:
        for item in items:
            slot, own = int(item["slot"]), int(item["buffers"])
            self._forget(slot)
            if self.inbox is not None:
                self.data[slot] = self.inbox.decode(item["data"])
            elif self.gpu is not None:
                self.data[slot] = self.gpu.decode(slot, item["data"], buffers[:own])
            buffers = buffers[own:]

    def _forget(self, slot: int) -> None:
        self.returned.pop(slot, None)
        if (snapshot := self.snapshots.pop(slot, None)) is not None:
            snapshot.free()

    def _go(self, slots: list[int]) -> protocol.Header:
        assert self.module is not None
        call = self.native.call
        readings: list[Reading] = []
        slot, single = slots[0], len(slots) == 1
        self.due, self.unready = slots if self.gpu is not None else [], None
        try:
            for slot in slots:
                gate, bell = (CHANNEL if slot == end else -1 for end in (slots[0], slots[-1]))
                self.returned[slot], reading = call(self.module.custom_kernel, self.data[slot], gate, bell, single)
                readings.append(reading)
        except BaseException as error:
            if slot != slots[-1]:
                self.native.ring(CHANNEL)
            raise self.unready or error from None
        if self.unready is not None:
            raise self.unready
        if not single:
            return {"readings": readings}
        self._snapshot(slot, CHANNEL, self.native.digest)
        return {"readings": readings, **self._settle()}

    def receive(self) -> None:
        """Make the inputs of the next calls readable, on a GPU, and then its caches cold: it has just been roused."""
        slots, self.due = self.due, []
        assert self.gpu is not None
        try:
            sweep, *keys = self.native.keys
            self.gpu.unmask(slots, keys)
            self.native.commit(self.gpu.sweep(sweep))
        except Exception as error:
            self.unready = error  # told when the call has been made: nobody listens now

    def _snapshot(self, slot: int, socket: int = -1, digest: int | None = None) -> outputs.Snapshot:
        self.last = self.snapshots[slot] = outputs.Snapshot(
            self.returned[slot], self.native, self.rooms, self.gpu is not None, socket, digest
        )
        self.inputs = outputs.tensors(self.data[slot])
        return self.last

    def _settle(self) -> protocol.Header:
        late = self.native.settle(self.threads)
        unchanged = self.last is None or self.last.keep(self.inputs)
        return {"late_ns": late, "unchanged": unchanged}

    def _fetch(self, slot: int, out: list[protocol.Buffer]) -> protocol.Header:
        snapshot = self.snapshots.get(slot) or self._snapshot(slot)
        return snapshot.message(outputs.tensors(self.data[slot]), out)

    def _observe(self, slot: int, mute: bool) -> protocol.Header:
        assert self.module is not None
        call, kernel = self.native.call, self.module.custom_kernel
        found, self.returned[slot] = op_profile.observe(lambda data: call(kernel, data)[0], self.data[slot], mute)
        self._snapshot(slot)
        return found


def _stage(settings: dict[str, Any]) -> Any:
    """Return what an interpreted kernel runs on; None for a kernel that runs as it is."""
    if not settings.get("stage"):
        return None
    from kernel_scientist.gpu.interpreter.worker_setup import Stage  # imported before the fork where it is needed

    return Stage(settings["stage"])


def _exercise(worker: Worker) -> Any:
    """Do a little of what kernels do, and look through the kernel's code and what it names.

    So the code that makes a call, and what it reads, is in the caches; while it waited, it was driven out.
    """
    if worker.due:
        worker.receive()
    x, out = worker.material
    end = time.perf_counter_ns() + x.numel()
    while time.perf_counter_ns() < end:
        pass
    kernel = getattr(worker.module, "custom_kernel", None)
    if type(kernel) is FunctionType:
        names, known = kernel.__code__.co_names, kernel.__globals__
        return kernel.__code__.co_code.count(0), kernel.__code__.co_consts, [type(known.get(name)) for name in names]
    return out.data_ptr()


def sweep_bytes(device: str) -> int:
    """Return what a sweep must read: twice the last level, with room; AMD's is not told (MI300X: 256 MB)."""
    told = int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0))
    return AMD_SWEEP_BYTES if torch.version.hip or not told else max(2 * told, LEAST_SWEEP_BYTES)


def _short(error: BaseException) -> str:
    return str(error)[:REPORT] or type(error).__name__


def run(sock: socket.socket, settings: dict[str, Any], native: NativeHarness) -> None:
    """Enter the sandbox and serve; never returns to the zygote's code."""
    os.chdir(settings["scratch"])
    os.environ.update(settings["environment"])
    os.nice(int(settings["nice"]))
    layers = seccomp.apply(seccomp.Limits.of(settings))
    runtime, seed = None, (0, 0)
    if settings["on_gpu"]:
        runtime, seed = Runtime.loaded(), struct.unpack("<QQ", sock.recv(16, socket.MSG_WAITALL))
    worker = Worker(sock, settings, native, runtime, seed)
    protocol.send(sock, {"op": "hello", "sandbox": list(layers)})
    worker.serve()
    os._exit(0)
