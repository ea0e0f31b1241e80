"""The untrusted side: holds one kernel, runs it on what it is sent, answers with data, never with a judgement.

It is given no seed, no expected output, no tolerance, and it cannot distinguish a checked call from a timed one.
Imports only the standard library and torch (and triton when the kernel does); the process is a fork of `fork_server`.
Messages (`sandbox.protocol`):

    load     {source}              -> build ... -> loaded | failed
    prepare  {items}               -> ready           per slot where inputs will be; they are written before `go`
    go       {slots, warm}         -> done {reading, outputs}   one row: a call per slot. Before the answer, natively
                                                      (`native.cpp`): start barrier, completion signal, copies of the
                                                      outputs. A GPU's worker decrypts its inputs and flushes the
                                                      caches before the barrier; `warm`: a slot of an
                                                      untimed call before it
    observe  {slot, mute, keys}    -> observed {...}  one untimed call: which library operations, which native calls
    seal                           -> sealed          compilation is over: no program may be started any more
    sample   {programs}            -> sampled         only so many programs of an interpreted launch run from now on
    memory                         -> report {...}    what an interpreted kernel did to memory since the last report
"""

import contextlib
import importlib.util
import itertools
import os
import socket
import struct
import sys
import traceback
from types import ModuleType
from typing import Any

import torch

from kernel_scientist.compile import cpp, extension, gpumode_compat
from kernel_scientist.compile.request import MOST_BUILDS, CompileError
from kernel_scientist.sandbox import protocol, seccomp
from kernel_scientist.workers.native import Keys, NativeHarness
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
        """`runtime`: on a GPU; `seed`: of the memory that sweeps read there (`input_masking`)."""
        self.sock, self.native = sock, native
        self.device, self.file = str(settings["device"]), os.path.join(os.getcwd(), "kernel.py")
        self.module: ModuleType | None = None
        self.inbox, self.gpu = Inbox(INBOX, int(settings["inputs_bytes"])), None
        native.bind(torch.Tensor, Worker.receive_keys, self)
        if runtime is not None:
            from kernel_scientist.workers.untrusted import input_masking  # triton is imported before the fork

            size = int(settings["sweep_bytes"]) or sweep_bytes(self.device)
            memory = input_masking.SweepMemory(self.device, size, seed)
            memory.sweep(0)  # it is compiled now: later no program may be started
            self.gpu = GpuInbox(self.device, native, runtime, memory, input_masking.turn)
            native.bind_gpu(runtime.addresses())
        self.due: list[int] = []
        """Slots of the row under way, on a GPU: their keys come at the barrier."""
        self.unready: Exception | None = None
        """Why their inputs could not be decrypted."""
        self.data: dict[int, Any] = {}
        self.libraries = 0
        self.stage = _stage(settings)

    def serve(self) -> None:
        """Answer until the evaluator hangs up."""
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
                return {"op": "done", **self._go(request["slots"], request["warm"], out)}
            case "observe":
                if self.gpu is not None:
                    self.gpu.unmask([request["slot"]], request["keys"][1:])
                return {"op": "observed", **self._observe(request["slot"], request["mute"], out)}
            case "seal":
                seccomp.seal()
                return {"op": "sealed"}
            case "sample":
                if self.stage:
                    self.stage.most_programs = int(request["programs"])
                return {"op": "sampled"}
            case "memory":
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
        """Return the traceback of an error, from the kernel's own lines on, where there are any."""
        frame = error.__traceback__
        while frame is not None and frame.tb_frame.f_code.co_filename != self.file:
            frame = frame.tb_next
        if frame is None and not isinstance(error, SyntaxError):
            frame = error.__traceback__
        return "".join(traceback.format_exception(type(error), error, frame)).replace(self.file, "kernel.py")

    def _build(self, request: extension.Request) -> str:
        """Ask the evaluator's builder for a shared object; return its path."""
        if self.libraries == MOST_BUILDS:
            raise CompileError(f"the kernel's file asks for more than {MOST_BUILDS} builds")
        self.libraries += 1  # also one that is refused: the evaluator counts those as well
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
            if self.gpu is None:
                self.data[slot] = self.inbox.decode(slot, item["data"])
            else:
                self.data[slot] = self.gpu.decode(slot, item["data"], buffers[:own])
            buffers = buffers[own:]

    def _go(self, slots: list[int], warm: int | None, out: list[protocol.Buffer]) -> protocol.Header:
        assert self.module is not None
        self.due, self.unready = slots if self.gpu is not None else [], None
        inputs = [self.data[slot] for slot in slots]
        try:
            kernel, earlier = self.module.custom_kernel, self.data.get(warm) if warm is not None else None
            returned, reading, placed = self.native.row(kernel, earlier, inputs, CHANNEL, self.inbox.address)
        except BaseException as error:
            raise self.unready or error from None
        if self.unready is not None:
            raise self.unready
        trees = [self._describe(output, slot, out, placed) for slot, output in zip(slots, returned, strict=True)]
        digests = [self.gpu.digest(slot) for slot in slots] if self.gpu is not None else []
        return {"reading": reading, "outputs": trees, "inputs": digests}

    def _describe(self, output: Any, slot: int, out: list[protocol.Buffer], placed: bool) -> protocol.Header:
        """Describe an output; its bytes go with the message, unless the evaluator had them `placed`."""
        numbers = itertools.count()

        def copy(tensor: torch.Tensor) -> int:
            if not placed:
                out.append(outputs.copied(tensor, self.native, self.gpu is not None))
            return next(numbers)

        return outputs.describe(output, outputs.tensors(self.data[slot]), copy)

    def receive_keys(self) -> None:
        """Decrypt the inputs of the next calls, on a GPU, and then flush its caches."""
        slots, self.due = self.due, []
        assert self.gpu is not None
        try:
            sweep, *keys = self.native.keys
            self.gpu.unmask(slots, keys)
            self.native.commit(self.gpu.sweep(sweep))
        except Exception as error:
            self.unready = error  # reported after the row: the evaluator does not listen now

    def _observe(self, slot: int, mute: bool, out: list[protocol.Buffer]) -> protocol.Header:
        assert self.module is not None
        observed, output = op_profile.observe(self.module.custom_kernel, self.data[slot], mute)
        if self.gpu is not None:
            self.native.gpu_synchronize()
        return {**observed, "outputs": [self._describe(output, slot, out, placed=False)]}


def _stage(settings: dict[str, Any]) -> Any:
    """Return what an interpreted kernel runs on; None for a kernel that runs as it is."""
    if not settings.get("stage"):
        return None
    from kernel_scientist.gpu.interpreter.worker_setup import Stage  # imported before the fork where it is needed

    return Stage(settings["stage"])


def sweep_bytes(device: str) -> int:
    """Return how much a sweep must read: twice the last level, with room; AMD reports none (MI300X: 256 MB)."""
    reported = int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0))
    return AMD_SWEEP_BYTES if torch.version.hip or not reported else max(2 * reported, LEAST_SWEEP_BYTES)


def _short(error: BaseException) -> str:
    return str(error)[:REPORT] or type(error).__name__


def run(sock: socket.socket, settings: dict[str, Any], native: NativeHarness) -> None:
    """Enter the sandbox and serve; never returns to the fork server's code."""
    os.chdir(settings["scratch"])
    os.environ.update(settings["environment"])
    os.nice(int(settings["nice"]))
    layers = seccomp.apply(seccomp.Limits.of(settings))
    runtime, seed = None, (0, 0)
    if settings["on_gpu"]:
        runtime, seed = Runtime.loaded(), struct.unpack("<QQ", sock.recv(16, socket.MSG_WAITALL))
    worker = Worker(sock, settings, native, runtime, seed)
    protocol.send(sock, {"op": "hello", "sandbox": list(layers), "address": worker.inbox.address})
    worker.serve()
    os._exit(0)
