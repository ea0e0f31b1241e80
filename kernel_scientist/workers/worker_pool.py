"""The pool of workers: one warm fork server in its sandbox, and a client for each worker that it forks."""

import ctypes
import functools
import json
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from kernel_scientist.compilers import gxx
from kernel_scientist.compilers.request import BuildRequest
from kernel_scientist.hardware import gpu
from kernel_scientist.records.errors import InfrastructureError, SetupError, StoppedError
from kernel_scientist.records.kernel import Verdict, digest
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import bubblewrap, landlock, seccomp
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.sandbox.process import Process
from kernel_scientist.workers import client, execution_environment, fork_server
from kernel_scientist.workers.client import SO_PASSCRED, WorkerClient
from kernel_scientist.workers.native import NativeHarness, source
from kernel_scientist.workers.shared_memory import SharedMemory
from kernel_scientist.workers.worker_memory import EvaluatorsGpu, WorkerMemory

MOST_FILES = 64 << 20
"""Most bytes of files in a worker's folder."""
SHADOWS = 4
"""Memory of a worker whose launches are executed here, over that of others: checking runs shadow each allocation."""
MACHINE, STAND_IN = "KERNEL_SCIENTIST_MACHINE", "KERNEL_SCIENTIST_STAND_IN"
"""Variable that names the library of `gpu.machine` to workers."""
EXECUTED = "kernel_scientist.gpu.machine.worker_setup"
"""Module that sets the machine up; the fork server imports it."""
FORK_SERVER = "kernel_scientist.workers.fork_server"
KEPT = ("PATH", "LANG", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES")
"""Environment variables that workers inherit."""
BARRIER_PAGES = 4
"""Pages of host memory that a GPU's worker shares with the evaluator, for the start barrier."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX, TRIM_BYTES = -1, -3, -8, 1 << 30


class WorkerPool:
    """Pool of workers, forked from one warm fork server. Thread-safe. Use as a context manager, or call `close`."""

    def __init__(
        self,
        harness: Harness,
        device: str = "cpu",
        preload: tuple[str, ...] = (),
        machine: Mapping[str, Any] | None = None,
        kernel_threads: bool = True,
    ) -> None:
        """`preload`: modules that workers share; `machine`: settings of the machine that executes what kernels launch,
        for a GPU that is not here (`prepared.simulated`); `kernel_threads`: whether a kernel may start threads on a
        CPU.
        """
        self.harness, self.device, self.machine = harness, device, machine
        self.preload = preload if machine is None else (*preload, EXECUTED)
        _keep_freed_memory()
        self.enclosure = _enclosure(harness.sandbox)
        """Enclosure of all workers: `bubblewrap`, `landlock` or empty."""
        self.kernel_threads = kernel_threads or device != "cpu"  # a GPU's driver needs threads of its own
        self.cores = sorted(os.sched_getaffinity(0))[: (harness.threads or None) if self.kernel_threads else 1]
        self.threads = len(self.cores)
        self.on_gpu = device != "cpu"
        """Whether inputs and outputs lie in a GPU's memory; then workers may start compilers until they are sealed."""
        self._lock = threading.Lock()
        self.stopped = threading.Event()
        """Event that is set when all work must end."""
        self.layers: tuple[str, ...] = ()
        """Active layers of the sandbox, as the last worker reported them before it read a kernel."""
        self.can_stop = True
        """Whether the evaluator may stop a worker's threads (ptrace), according to the last worker."""
        self.precedence = False
        """Whether a worker's timed rows run before all other programs, according to the last worker."""
        self._memories: list[tuple[WorkerMemory, Process]] = []
        """Memories of earlier workers, with their processes, for reuse."""
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._ready = False
        """Whether the fork server has answered a request."""

    @functools.cached_property
    def native(self) -> NativeHarness:
        """Native code of the evaluator's side."""
        return NativeHarness(str(native_library()))

    @functools.cached_property
    def gpu(self) -> EvaluatorsGpu:
        """The GPU as the evaluator's own process uses it."""
        return EvaluatorsGpu.opened(self.device)

    def __enter__(self) -> Self:
        """Start the fork server, if it was not. It takes seconds to import torch; the first worker waits for it."""
        with self._lock:
            if self._control is None:
                self._spawn()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the fork server and all workers; work in progress raises StoppedError. The pool cannot be reopened."""
        self.stopped.set()
        with self._lock:
            if self._control is not None:
                self._control.close()
            if self._process is not None:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(10 if self._ready else 0)
                self._process.kill()
                self._process.wait()
            self._process = self._control = None
            for memory, _ in self._memories:
                memory.close()
            self._memories.clear()

    @contextmanager
    def worker(self, timing: bool = False, observed: bool = False, compiles: bool = False) -> Generator[WorkerClient]:
        """Fork a worker; on exit kill it and its descendants.

        Unless `timing`, the worker runs niced. An `observed` worker may start threads, as torch's profiler does; one
        that `compiles` may start programs until it is sealed.
        """
        with self.workers([compiles], timing, observed) as (worker,):
            yield worker

    @contextmanager
    def workers(self, compiles: Sequence[bool], timing: bool, observed: bool = False) -> Generator[list[WorkerClient]]:
        """Fork a worker for each of `compiles`; each enters its sandbox while the next is forked."""
        with ExitStack() as stack:
            found = [stack.enter_context(self._worker(timing, observed, one)) for one in compiles]
            for worker in found:
                worker.greet()
                self.layers = (("bubblewrap",) if self.enclosure == "bubblewrap" else ()) + worker.layers
                self.can_stop = worker.can_stop
                self.precedence = self._may_precede(worker.process)
                worker.precedes = timing and self.precedence
                if self.on_gpu:
                    self._copy("keep", worker, fork_server.OURS)
            yield found

    def _may_precede(self, process: Process) -> bool:
        """Return whether a worker's timed rows may run before all other programs.

        Not on a GPU, where the host's threads are not what is timed; nor on a single core, which a worker that spins at
        the barrier would keep from the evaluator.
        """
        several = not self.on_gpu and len(os.sched_getaffinity(0)) > 1
        return several and process.take_precedence() and process.give_way()

    @contextmanager
    def _worker(self, timing: bool, observed: bool, compiles: bool) -> Generator[WorkerClient]:
        programs = self.on_gpu or compiles
        memory, worker = self._memory(), None
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, SO_PASSCRED, 1)  # before the fork: a worker may send early
        status_read, status_write = os.pipe()
        log = os.memfd_create("worker-output", os.MFD_CLOEXEC)  # an anonymous file, which needs no clean-up
        try:
            try:
                settings = self._settings(timing, self.kernel_threads or observed, programs)
                settings["device_bytes"] = memory.inputs.size if self.on_gpu else 0
                descriptors = [theirs.fileno(), log, status_write, *memory.descriptors]
                pid: int = self._request({"spawn": settings}, descriptors)["pid"]
            finally:
                theirs.close()
                os.close(status_write)
            channel = ours, log, status_read, self.harness, self.stopped
            places = (memory.host, memory.inputs, self.native)
            simulates = self.machine is not None
            worker = WorkerClient(
                *channel, pid, *places, on_gpu=self.on_gpu, programs=programs, simulates_gpu=simulates
            )
            yield worker
        finally:
            for descriptor in (ours.detach(), status_read, log):
                os.close(descriptor)
            with self._lock:  # a worker that never greeted may still use its memory, so it cannot be reused
                reusable = worker is not None and worker.process.number and not self.stopped.is_set()
                if worker is not None and reusable:
                    self._memories.append((memory, worker.process))
            if not reusable:
                memory.close()
            if worker is not None and not self.stopped.is_set() and self._control is not None:
                self._request({"kill": worker.pid})

    def _memory(self) -> WorkerMemory:
        """Return new memory for a worker, or reuse that of one that has ended."""
        with self._lock:
            for place, (memory, process) in enumerate(self._memories):
                if not process.exists():
                    del self._memories[place]
                    memory.reset()
                    return memory
        size = self.harness.memory_mib << 20
        if not self.on_gpu:
            return WorkerMemory(SharedMemory(size, self.native))
        with self._lock:
            device = self.gpu.memory(size)
        return WorkerMemory(SharedMemory(BARRIER_PAGES * mmap.PAGESIZE, self.native), device)

    def require_room(self, worker: WorkerClient) -> None:
        """Raise KernelFailure if a worker's folder is too large: the folders of all workers share a disk."""
        used = self._request({"used": worker.pid})["used"]
        if used is None:
            raise KernelFailure(Verdict.REJECTED, "its folder contains unreadable or too deeply nested folders")
        if used > MOST_FILES:
            reason = f"it filled its folder with {used >> 20} MiB; {MOST_FILES >> 20} MiB are allowed"
            raise KernelFailure(Verdict.REJECTED, reason)

    def keep(self, worker: WorkerClient, source: str) -> None:
        """Keep a worker's compiled files for the next one with the same source."""
        self._copy("keep", worker, digest(source))

    def fill(self, worker: WorkerClient, source: str) -> None:
        """Copy the files kept for this source into a fresh worker's folder."""
        self._copy("fill", worker, digest(source))

    def _copy(self, request: str, worker: WorkerClient, name: str) -> None:
        if "landlock" in worker.layers:  # Landlock hides the files from other workers
            self._request({request: worker.pid, "name": name})

    def _settings(self, timing: bool, threads: bool, programs: bool) -> dict[str, Any]:
        limits = {
            "level": self.harness.sandbox,
            "device": self.device,
            "memory_bytes": (self.harness.memory_mib << 20) * (SHADOWS if self.machine is not None else 1),
            "inputs_bytes": self.harness.memory_mib << 20,
            "output_bytes": int(self.harness.output_mib * (1 << 20)),
            "programs": programs,
            "threads": threads,
        }
        surroundings = {"cores": self.cores, "nice": 0 if timing else 5}
        return {"limits": limits, "on_gpu": self.on_gpu, "machine": self.machine, **surroundings}

    def _request(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        with self._lock:
            if self.stopped.is_set():
                raise StoppedError("the worker pool was closed")
            control = self._control or self._spawn()
            try:
                control.settimeout(client.START_TIMEOUT_S)
                socket.send_fds(control, [json.dumps(message).encode()], descriptors)
                reply: dict[str, Any] = json.loads(control.recv(1 << 16))
            except (OSError, ValueError) as error:
                self._end(control)  # the next request starts a new one
                end = "has ended; the next request starts another" if self._ready else "did not start: see above"
                raise InfrastructureError(f"the workers' fork server {end}") from error
            self._ready = True
            return reply

    def _end(self, control: socket.socket) -> None:
        """End a fork server that does not answer, and with it its workers."""
        control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._control = None

    def _spawn(self) -> socket.socket:
        bubblewrap.end_orphans(FORK_SERVER)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                self._command(str(theirs.fileno())),
                env=self._environment(),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._control, self._ready = ours, False
        return ours

    def _command(self, control: str) -> list[str]:
        native = str(native_library())
        cores = ",".join(str(core) for core in self.cores)
        machine = self.machine or {}
        libraries = [library for library in (native, machine.get("library"), machine.get("stand_in")) if library]
        around = bubblewrap.bubblewrap(self.device, libraries) if self.enclosure == "bubblewrap" else []
        # -P: the current folder must not come first on Python's path
        python = [sys.executable, "-P", "-m", FORK_SERVER]
        own = ["kernel_scientist.workers.untrusted.delay"] if self.on_gpu else []
        return [*around, *python, control, native, cores, *own, *self.preload]

    def _environment(self) -> dict[str, str]:
        """Return the environment of workers: package paths and the number of threads, without keys or a home."""
        own = gpu.only_first(os.environ) if self.on_gpu else {}
        if self.machine is not None:
            own = {MACHINE: self.machine["library"], STAND_IN: self.machine["stand_in"]}
        return {
            **{name: os.environ[name] for name in KEPT if name in os.environ},
            **own,
            "PYTHONPATH": bubblewrap.python_path(),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "HOME": tempfile.gettempdir(),
            **execution_environment.variables(self.threads),
        }


def native_library() -> Path:
    """Build the native part of the workers (`shim/`), once per compiler and processor; return its path.

    It is linked with OpenMP's runtime, so that OpenMP reads our settings before a kernel can change them. Raises
    SetupError with the compiler's messages.
    """
    built = gxx.build(BuildRequest(source(), {}, ["-pthread"]))
    if built.path is None:
        raise SetupError(f"the compiler refuses the harness's own native part: {built.report.log}")
    return built.path


def _keep_freed_memory() -> None:
    """Let glibc keep memory that this process frees; otherwise each call's inputs and outputs cost page faults.

    All threads share one arena: those of others cannot hold a large block.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, execution_environment.MALLOC["mmap_threshold"])
        libc.mallopt(M_TRIM_THRESHOLD, TRIM_BYTES)
        libc.mallopt(M_ARENA_MAX, 1)


def _enclosure(level: str) -> str:
    """Return the enclosure of all workers for a level of `harness.sandbox`. Raises SetupError if there is none."""
    if level != "none" and not seccomp.supported():
        raise SetupError(
            "this system offers no sandbox for kernels (it needs Linux on x86_64 or aarch64); "
            "set harness.sandbox=none to run them unprotected"
        )
    if level != "auto":
        return ""
    if bubblewrap.bubblewrap_works():
        return "bubblewrap"
    if landlock.version():
        return "landlock"
    raise SetupError(
        "this system has neither bubblewrap nor Landlock to hide files from kernels: install bubblewrap "
        "(Debian, Ubuntu: apt-get install bubblewrap) or set harness.sandbox=basic to let kernels read files"
    )
