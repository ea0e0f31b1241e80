"""The native part of the harness (`native.cpp`): the timed call, the verifier's clock around it, digests, the sweep.

In a worker its functions are bound before the kernel's file is read, and it reads two clocks: the system's and the
processor's own counter. Imports only the standard library.
"""

import ctypes
import enum
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).with_name("native.cpp")
MOST_PLACES, LINE = 64, 64
GLIMPSE_LINES = 256
"""Pieces of an output that are read when the bell has rung: if a hundredth came later, they show it in 92 of 100."""
SETTLE_NS = 150_000
"""The length of one look at whether all is quiet."""
SPIN_NS = 250_000
"""What each thread of a pool may go on spinning after a call; GOMP_SPINCOUNT makes it some 100 us."""
SETTLE_LIMIT_NS = 20_000_000


Keys = tuple[int, int]
"""Of a tensor on its way to a GPU's worker: 64 bits each."""


class Hearing(enum.IntEnum):
    """How soon the verifier hears that a call has ended when a kernel's threads spin on every core (native.cpp)."""

    IN_TURN = 0
    SOON = 1
    """By a short time slice, which any user may ask for (Linux 6.12 and newer)."""
    FIRST = 2
    """By real-time priority (SCHED_FIFO)."""


class Reading(NamedTuple):
    """What the clocks said about one call."""

    ns: int
    ticks: int
    cpu_ns: int
    """CPU time of all threads."""
    switches: int
    """Involuntary context switches."""
    event_ns: int = 0
    """Between two events on a GPU's default stream; 0 on a CPU, or when the events say nothing usable."""


class _Place(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class _Line(ctypes.Structure):
    _fields_ = [
        ("place", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("bytes", ctypes.c_char * LINE),
    ]


class Glimpse:
    """Pieces of an output, read out of the worker's memory the moment the bell had rung."""

    def __init__(self, places: Any, lines: Any, count: int, told: int) -> None:
        self._places, self._lines, self._count, self._told = places, lines, count, told

    def __bool__(self) -> bool:
        """Whether anything could be read."""
        return self._count > 0

    def lasts(self, native: "NativeHarness", pid: int) -> bool:
        """Whether the worker's memory still holds the same."""
        return bool(native.lasts(pid, self._places, self._lines, self._count))

    @property
    def places(self) -> list[tuple[int, int]]:
        """Where the worker said that its outputs lie: (address, size), call by call."""
        return [(place.start or 0, place.size) for place in self._places[: self._told]]

    def fits(self, native: "NativeHarness", buffers: Sequence[tuple[int, int]], first: int = 0, of: int = 0) -> bool:
        """Whether the pieces are those of what was handed over later, at (address, size): from `first` on of `of`."""
        if self._told != (of or len(buffers)):
            return False
        later = (_Place * len(buffers))(*buffers)
        return bool(native.fit(self._places, later, first, len(buffers), self._lines, self._count))


class Row(NamedTuple):
    """What the verifier's clock said about one or more calls in a row."""

    before_ns: int
    """From the moment that the worker is roused to the moment that it is ready."""
    ns: int
    """From the gate's opening to the bell."""
    after_ns: int
    """From the bell until it was told where the output lies; where it cannot read there, to the digest."""
    digest: int
    """What pins the first call's output down."""
    glimpse: Glimpse
    swept: int
    """On a GPU, what the worker said of its sweep before the gate was opened."""
    cpu_ns: int
    """CPU time of the worker's process when it was roused; 0: not asked for."""


Look = Callable[[Glimpse], None]
"""What the verifier does when the bell has rung, while the worker waits."""


class _Stamps(ctypes.Structure):
    _fields_ = [
        ("start_ns", ctypes.c_int64),
        ("end_ns", ctypes.c_int64),
        ("start_ticks", ctypes.c_uint64),
        ("end_ticks", ctypes.c_uint64),
        ("cpu_ns", ctypes.c_int64),
        ("switches", ctypes.c_int64),
        ("digest", ctypes.c_uint64),
        ("pinned", ctypes.c_int64),
        ("event_ns", ctypes.c_int64),
        ("error", ctypes.c_int64),
    ]


class NativeHarness:
    """The loaded library. `call` needs the interpreter's lock, the rest does not."""

    def __init__(self, path: str) -> None:
        with_lock, without = ctypes.PyDLL(path), ctypes.CDLL(path)
        self._stamps = _Stamps()
        self._call: Any = with_lock.lab_call
        ends = (ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_double)
        self._call.argtypes = (ctypes.py_object, ctypes.py_object, ctypes.POINTER(_Stamps), *ends)
        self._call.restype = ctypes.py_object
        self._bind = _bind(with_lock.lab_bind, None, ctypes.POINTER(ctypes.py_object))
        self._bind_gpu = _bind(without.lab_bind_gpu, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
        self.gpu_synchronize = _bind(without.lab_gpu_synchronize, ctypes.c_int)
        self._gpu_copy = _bind(without.lab_gpu_copy, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        self.ring = _bind(without.lab_ring, None, ctypes.c_int)
        self._key = _bind(without.lab_key, ctypes.c_uint64, ctypes.c_int64)
        self._keys = _bind(without.lab_keys, ctypes.c_int64)
        self.commit = _bind(without.lab_commit, None, ctypes.c_uint64)
        self._mask = _bind(without.lab_mask, None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_uint64)
        window = ctypes.POINTER(ctypes.c_int64)
        sum_, seed = ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint64
        seen = (ctypes.c_int, seed, ctypes.POINTER(_Place), ctypes.POINTER(_Line), window, sum_, ctypes.c_int64)
        asked = (ctypes.c_int, ctypes.c_int64, window, sum_)
        self._row = _bind(without.lab_row, ctypes.c_int, *asked, *seen, ctypes.c_int)
        self._release = _bind(without.lab_release, ctypes.c_int, *asked, window)
        self._settle = _bind(without.lab_settle, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
        self.ticks = _bind(without.lab_ticks, ctypes.c_uint64)
        self._hearing = _bind(without.lab_hearing, ctypes.c_int)
        place, size = ctypes.c_void_p, ctypes.c_size_t
        many = (ctypes.POINTER(_Place), ctypes.c_int, ctypes.c_double)
        self._pin = _bind(without.lab_pin, ctypes.c_uint64, ctypes.c_int, *many)
        lines = ctypes.POINTER(_Line)
        self.peek = _bind(without.lab_peek, ctypes.c_int, ctypes.c_int, ctypes.POINTER(_Place), lines, ctypes.c_int)
        self.lasts = _bind(without.lab_lasts, ctypes.c_int, ctypes.c_int, ctypes.POINTER(_Place), lines, ctypes.c_int)
        number = ctypes.c_int
        self.fit = _bind(without.lab_fit, number, many[0], many[0], number, number, lines, number)
        self.stream = _bind(without.lab_stream, None, place, place, size)
        self.stream_fill = _bind(without.lab_stream_fill, None, place, ctypes.c_int, size)
        cores = ctypes.POINTER(ctypes.c_int)
        self.sweep = _bind(without.lab_sweep, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, cores, ctypes.c_int)
        self._anywhere = random.SystemRandom().random

    def bind(self, tensor: type, exercise: Callable[[Any], Any], material: object) -> None:
        """Tell what a tensor is and how to ask for its bytes, before a kernel could put something in its place.

        `exercise` is called on `material` just before a timed call: it should do a little of what kernels do.
        """
        methods = (getattr(tensor, name) for name in ("data_ptr", "numel", "element_size", "is_contiguous"))
        self._bound = (ctypes.py_object * 9)(tensor, *methods, tuple, list, exercise, material)
        self._bind(self._bound)

    def bind_gpu(self, functions: Sequence[int]) -> None:
        """Tell the functions of a GPU's runtime (`Runtime.addresses`), before a kernel could put others in their place.

        From here on calls are timed by its events as well, and end when the whole device is idle. Raises RuntimeError.
        """
        if error := self._bind_gpu((ctypes.c_void_p * len(functions))(*functions)):
            raise RuntimeError(f"the GPU's runtime cannot be used here: it reports error {error}")

    def read_gpu(self, to: int, start: int, size: int) -> None:
        """Copy bytes at an address of a GPU's memory to one of ours. Raises RuntimeError."""
        if error := self._gpu_copy(to, start, size):
            raise RuntimeError(f"the GPU's runtime reports error {error} while an output is copied")

    def call(
        self, kernel: Callable[[Any], Any], data: object, gate: int = -1, bell: int = -1, pin: bool = False
    ) -> tuple[Any, Reading]:
        """Call the kernel between two readings of the clocks; what it raises is raised here.

        First wait for a byte on the socket `gate`, if one is given; afterwards send one on `bell`, and then the digest
        of the output (0 without `pin`), if it can be found without Python: see `digest`.

        Raises RuntimeError when a GPU's runtime reports an error at the end of what the call has started.
        """
        stamps = self._stamps
        output = self._call(kernel, data, stamps, gate, bell, pin, self._anywhere())
        if stamps.error:
            raise RuntimeError(f"the GPU's runtime reports error {stamps.error} when the call has ended")
        span, ticks = stamps.end_ns - stamps.start_ns, stamps.end_ticks - stamps.start_ticks
        return output, Reading(span, ticks, stamps.cpu_ns, stamps.switches, stamps.event_ns)

    @property
    def digest(self) -> int | None:
        """The digest that the last call has sent; None: it has sent none, it is for the caller to do."""
        return self._stamps.digest if self._stamps.pinned else None

    def row(
        self,
        socket: int,
        limit_s: float,
        pid: int = 0,
        keys: Sequence[int] = (),
        clock: int = 0,
        look: Look | None = None,
    ) -> "Row":
        """Rouse a worker that stands before the gate, open it; return what this process's clock says of what followed.

        `pid`: the worker's number, if its memory may be read; -1 on a GPU, where the worker shows pieces and gets
        `keys` when it is roused. `clock`: the CPU clock of its process. `look` is called when the bell has rung, before
        the worker goes on.
        Raises TimeoutError, ConnectionError when the worker is gone, ValueError when it says what cannot be.
        """
        window, sums = (ctypes.c_int64 * 5)(), (ctypes.c_uint64 * 2)()
        places, lines, sizes = (
            (_Place * MOST_PLACES)(),
            (_Line * GLIMPSE_LINES)(),
            (ctypes.c_int64 * 2)(0, GLIMPSE_LINES),
        )
        seed, limit_ms = int(self._anywhere() * 2**63), int(limit_s * 1000)
        told = (ctypes.c_uint64 * len(keys))(*keys)
        seen = (pid, seed, places, lines, sizes, told, len(keys), clock)
        _require(self._row(socket, limit_ms, window, sums, *seen))
        glimpse = Glimpse(places, lines, sizes[1], sizes[0])
        if look is not None:
            look(glimpse)
        _require(self._release(socket, limit_ms, window, sums, sizes))
        before, during, after = (window[i + 1] - window[i] for i in range(3))
        return Row(before, during, after, sums[0], glimpse, sums[1], window[4])

    @property
    def hearing(self) -> Hearing:
        """How soon the system lets the verifier hear that a call has ended, whatever a kernel's threads do."""
        return Hearing(self._hearing())

    def can_peek(self, pid: int) -> bool:
        """Whether the system lets this process read another one's memory."""
        try:
            with Path(f"/proc/{pid}/maps").open() as maps:
                start = int(next(maps).partition("-")[0], 16)
        except (OSError, ValueError, StopIteration):
            return False
        return bool(self.peek(pid, (_Place * 1)((start, LINE)), (_Line * 1)((0, 0, LINE)), 1))

    @property
    def keys(self) -> list[int]:
        """What came when the worker was roused, on a GPU: the sweep's key, then two for each tensor that is masked."""
        return [self._key(i) for i in range(self._keys())]

    def mask(self, data: bytearray, keys: "Keys") -> None:
        """Make bytes, a multiple of sixteen, unreadable without both keys, or readable again (`masks`)."""
        self._mask((ctypes.c_char * len(data)).from_buffer(data), len(data) // 16, *keys)

    def settle(self, threads: int) -> int:
        """Wait until the process's other threads rest; return the ns of CPU time they went on for, 0 for a moment's."""
        return self._settle(SETTLE_NS, SETTLE_LIMIT_NS, SPIN_NS * max(1, threads - 1))

    def pin(self, places: Sequence[tuple[int, int]], socket: int = -1) -> int:
        """Return the digest of bytes at (address, size), each read from somewhere nobody knows beforehand.

        It is sent at once on `socket`, if one is given.
        """
        return self._pin(socket, (_Place * len(places))(*places), len(places), self._anywhere())


def _bind(function: Any, result: Any, *arguments: Any) -> Callable[..., Any]:
    function.restype, function.argtypes = result, arguments
    return function


def _require(code: int) -> None:
    match code:
        case 0:
            return
        case 1:
            raise TimeoutError
        case 2:
            raise ConnectionError
        case _:
            raise ValueError
