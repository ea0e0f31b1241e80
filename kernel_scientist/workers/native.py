"""The native part of the harness (`shim/`), loaded by workers and by the evaluator.

Worker: the timed row of calls. Evaluator: the start barrier, the completion signal, the clock between them, and
stopping the worker's other threads from outside. In a worker its functions are bound before the kernel's file is read.
Imports only the standard library.
"""

import contextlib
import ctypes
import enum
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PARTS = ("common", "gpu", "worker", "evaluator")
"""Files of `shim/`, which are compiled as one."""
MOST_PLACES = 256
"""Most tensors that the calls of a row may return in total."""
MOST_THREADS = 4096
STOP_LIMIT_MS = 2000
BARRIER_BYTES = 4096
"""Bytes of the start barrier, at the beginning of the shared memory."""

SLOTS = 65
"""Slots per group: one with its own memory, and one per call of the longest row (`shared_memory`)."""

Place = tuple[int, int]
"""Address and size in bytes."""


class WakePriority(enum.IntEnum):
    """Scheduling of the evaluator's thread, which decides how soon it wakes when a kernel keeps all cores busy."""

    NORMAL = 0
    SHORT_SLICE = 1
    """A short time slice, which needs no privilege (Linux 6.12 and newer)."""
    REAL_TIME = 2
    """Real-time priority (SCHED_FIFO)."""


class Reading(NamedTuple):
    """Readings of the worker's own clocks for a row of calls."""

    ns: int
    cpu_ns: int
    """CPU time of all threads."""
    switches: int
    """Involuntary context switches."""
    event_ns: int = 0
    """Between two events on a GPU's default stream; 0 on a CPU, or when the events report nothing usable."""
    ahead_ns: int = 0
    """Of the delay before the first event, behind which the calls were queued (`untrusted.delay`); 0 without one."""


class Completion(NamedTuple):
    """The evaluator's measurement of a row of calls."""

    wall_ns: int
    """From the opening of the start barrier to the completion signal."""
    places: tuple[Place, ...] | None
    """Addresses of the outputs by call; None if the worker did not find them or the kernel raised."""


class Stopped:
    """Threads of another process that were stopped."""

    def __init__(self, threads: Any, count: int) -> None:
        """`threads`: two numbers for each (`shim/`). `count`: negative where the system refused."""
        self.threads, self.allowed = threads, count >= 0
        self.error = max(-count, 0)
        """Why not: an error number (`errno`)."""
        self.count = ctypes.c_int(max(count, 0))
        """How many are to be resumed."""
        self.settled = False
        """Whether the process has taken over a GPU (`NativeHarness.settle`)."""


_INTEGER, _LONG = ctypes.c_int, ctypes.c_int64
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t
_MORE = ctypes.CFUNCTYPE(_LONG)
_LONGS, _INTEGERS = ctypes.POINTER(_LONG), ctypes.POINTER(_INTEGER)


class NativeHarness:
    """The loaded native library. Only `row` needs Python's interpreter lock (GIL)."""

    def __init__(self, path: str) -> None:
        with_lock, without = ctypes.PyDLL(path), ctypes.CDLL(path, use_errno=True)
        python = ctypes.py_object
        places = (_POINTER, _POINTER, _LONG, _INTEGER)
        self._row = _bind(with_lock.lab_row, python, python, _POINTER, python, _LONGS, _INTEGER, *places)
        self._bind = _bind(with_lock.lab_bind, None, ctypes.POINTER(python))
        self._bind_gpu = _bind(without.lab_bind_gpu, _INTEGER, ctypes.POINTER(_POINTER))
        self.gpu_synchronize = _bind(without.lab_gpu_synchronize, _INTEGER)
        self._gpu_copy = _bind(without.lab_gpu_copy, _INTEGER, _POINTER, _POINTER, _SIZE)
        self._bind_delay = _bind(without.lab_bind_delay, None, _POINTER)
        self._settle = _bind(without.lab_settle, _INTEGER, _INTEGER, _POINTER, _LONG)
        results, stopped = (_LONGS, _LONGS, _LONGS), (_INTEGERS, _INTEGERS, _INTEGER)
        self._run = _bind(without.lab_run, _INTEGER, _INTEGER, _POINTER, _MORE, *results, *stopped)
        self._stop = _bind(without.lab_stop, _INTEGER, _INTEGER, _INTEGER, _INTEGERS, _INTEGER, _LONG)
        self._resume = _bind(without.lab_resume, None, _INTEGERS, _INTEGER)
        self.tell_faults = _bind(without.lab_tell_faults, None, _POINTER)
        """Worker: tell the evaluator, by the memory at this address, where a forbidden access was that ended it."""
        self.fault = _bind(without.lab_fault, ctypes.c_uint64, _POINTER)
        """Evaluator: return the address that a worker told; 0 if it told none."""
        self._wake_priority = _bind(without.lab_wake_priority, _INTEGER)
        self.stream = _bind(without.lab_stream, None, _POINTER, _POINTER, _SIZE)
        self.stream_fill = _bind(without.lab_stream_fill, None, _POINTER, _INTEGER, _SIZE)

    def bind(self, tensor: type) -> None:
        """Bind the tensor type and the access to its bytes, before a kernel could replace them."""
        methods = (getattr(tensor, name) for name in ("data_ptr", "numel", "element_size", "is_contiguous"))
        self._bound = (ctypes.py_object * 7)(tensor, *methods, tuple, list)
        self._bind(self._bound)

    def bind_gpu(self, functions: Sequence[int]) -> None:
        """Bind the functions of a GPU's runtime (`Runtime.addresses`), before a kernel could replace them.

        From here on rows are timed by its events as well, and end when the whole device is idle. Raises RuntimeError.
        """
        if error := self._bind_gpu((ctypes.c_void_p * len(functions))(*functions)):
            raise RuntimeError(f"the GPU's runtime cannot be used here: it reports error {error}")

    def bind_delay(self, function: int, blocks: int, threads: int, shared_bytes: int, arguments: Any) -> None:
        """Bind the kernel behind which rows are queued (`untrusted.delay.Delay`)."""
        place = ctypes.cast(arguments, _POINTER).value or 0
        self._bind_delay((ctypes.c_int64 * 5)(function, blocks, threads, shared_bytes, place))

    def read_gpu(self, to: int, start: int, size: int) -> None:
        """Copy bytes at an address of a GPU's memory to one of ours. Raises RuntimeError."""
        if error := self._gpu_copy(to, start, size):
            raise RuntimeError(f"the GPU's runtime reports error {error} while an output is copied")

    def row(
        self,
        kernel: Callable[[Any], Any],
        warm: object,
        inputs: list[Any],
        socket: int,
        shared: int,
        outbox: Place = (0, 0),
        queued: bool = False,
    ) -> tuple[list[Any], Reading, bool]:
        """Worker: wait at the start barrier, call the kernel once per input, let the evaluator copy the outputs.

        `warm`: inputs of an untimed call before the barrier, or None. `shared`: address of the memory with the barrier;
        `outbox`: address and size of the memory to which a GPU's outputs are copied as soon as its default stream has
        ended; larger ones are not. `queued`: whether the calls are queued behind a delay, on a GPU. Returns outputs,
        the clocks' readings for the row, and whether the outputs' places were found. Exceptions of the kernel
        propagate. Raises RuntimeError when a GPU's runtime reports an error at the end of the row.
        """
        stamps = (ctypes.c_int64 * 7)()
        before = None if warm is None else id(warm)
        outputs = self._row(kernel, before, inputs, stamps, socket, shared, *outbox, queued)
        *reading, error, placed = stamps
        if error:
            raise RuntimeError(f"the GPU's runtime reports error {error} when the call has ended")
        return outputs, Reading(*reading), bool(placed)

    def settle(self, socket: int, shared: int, limit_s: float) -> None:
        """Evaluator: let a GPU's waiting worker take the GPU over from this process.

        Raises TimeoutError, ConnectionError if the worker has ended.
        """
        if code := self._settle(socket, shared, int(limit_s * 1000)):
            raise {1: TimeoutError, 2: ConnectionError}.get(code, ValueError)

    def run(self, socket: int, shared: int, left_s: Callable[[], float], stopped: Stopped | None = None) -> Completion:
        """Evaluator: open the start barrier of a waiting worker and wait for its completion signal.

        `stopped`: its stopped threads. They go on just before the barrier opens; with `Stopped.settled` just after.

        `left_s` says how many seconds to wait, and is asked again when they are over; 0 ends it. Raises TimeoutError,
        ConnectionError if the worker has ended, ValueError for an invalid message.
        """
        wall_ns, found, places = ctypes.c_int64(), ctypes.c_int64(), (ctypes.c_int64 * (2 * MOST_PLACES))()
        more, own = _MORE(lambda: int(left_s() * 1000)), stopped or Stopped((ctypes.c_int * 2)(), 0)
        held = (own.threads, ctypes.byref(own.count), own.settled)
        if code := self._run(socket, shared, more, wall_ns, places, found, *held):
            raise {1: TimeoutError, 2: ConnectionError}.get(code, ValueError)
        known = tuple(zip(places[: 2 * found.value : 2], places[1 : 2 * found.value : 2], strict=True))
        return Completion(wall_ns.value, known if found.value >= 0 else None)

    @contextlib.contextmanager
    def stopped(self, pid: int, with_main: bool = False) -> Generator[Stopped]:
        """Stop a process's threads from outside (the main one only if `with_main`) and resume them on exit.

        Entry and exit must be in the same thread.
        """
        threads = (ctypes.c_int * (2 * MOST_THREADS))()
        found = Stopped(threads, self._stop(pid, 0 if with_main else pid, threads, MOST_THREADS, STOP_LIMIT_MS))
        try:
            yield found
        finally:
            if found.count.value > 0:
                self._resume(threads, found.count)

    @property
    def wake_priority(self) -> WakePriority:
        """Scheduling that the evaluator's thread has while it waits for the completion signal."""
        return WakePriority(self._wake_priority())


def source() -> str:
    """Return the library's source."""
    folder = Path(__file__).with_name("shim")
    return "\n".join((folder / f"{part}.cpp").read_text() for part in PARTS)


def _bind(function: Any, result: Any, *arguments: Any) -> Callable[..., Any]:
    function.restype, function.argtypes = result, arguments
    return function
