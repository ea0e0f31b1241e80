"""The native part of the harness (`shim.cpp`): the timed call, the verifier's clock around it, digests, the sweep.

In a worker its functions are bound before the kernel's file is read, and it reads two clocks: the system's and the
processor's own counter. Imports only the standard library.
"""

import ctypes
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).with_name("shim.cpp")
SETTLE_NS = 150_000
"""The length of one look at whether all is quiet."""
SPIN_NS = 250_000
"""What each thread of a pool may go on spinning after a call; GOMP_SPINCOUNT makes it some 100 us."""
SETTLE_LIMIT_NS = 20_000_000


class Reading(NamedTuple):
    """What the clocks said about one call."""

    ns: int
    ticks: int
    cpu_ns: int
    """CPU time of all threads."""
    switches: int
    """Involuntary context switches."""
    event_ns: int = 0
    """Between two events on a GPU's stream; 0 on a CPU, or when the events say nothing usable."""


class Row(NamedTuple):
    """What the verifier's clock said about one or more calls in a row."""

    ns: int
    """From the gate's opening to the bell."""
    after_ns: int
    """From the bell to the digest."""
    digest: int
    """What pins the first call's output down."""


class _Stamps(ctypes.Structure):
    _fields_ = [
        ("start_ns", ctypes.c_int64),
        ("end_ns", ctypes.c_int64),
        ("start_ticks", ctypes.c_uint64),
        ("end_ticks", ctypes.c_uint64),
        ("cpu_ns", ctypes.c_int64),
        ("switches", ctypes.c_int64),
    ]


class Shim:
    """The loaded library. `call` needs the interpreter's lock, the rest does not."""

    def __init__(self, path: str) -> None:
        with_lock, without = ctypes.PyDLL(path), ctypes.CDLL(path)
        self._stamps = _Stamps()
        self._call: Any = with_lock.lab_call
        self._call.argtypes = (ctypes.py_object, ctypes.py_object, ctypes.POINTER(_Stamps), ctypes.c_int, ctypes.c_int)
        self._call.restype = ctypes.py_object
        window = ctypes.POINTER(ctypes.c_int64)
        digest = ctypes.POINTER(ctypes.c_uint64)
        self._row = _bind(without.lab_row, ctypes.c_int, ctypes.c_int, ctypes.c_int64, window, digest)
        self._settle = _bind(without.lab_settle, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
        self.ticks = _bind(without.lab_ticks, ctypes.c_uint64)
        place, size = ctypes.c_void_p, ctypes.c_size_t
        many = (ctypes.POINTER(place), ctypes.POINTER(size), ctypes.c_int, ctypes.c_double)
        self._pin = _bind(without.lab_pin, ctypes.c_uint64, ctypes.c_int, *many)
        self.stream = _bind(without.lab_stream, None, place, place, size)
        self.stream_fill = _bind(without.lab_stream_fill, None, place, ctypes.c_int, size)
        cores = ctypes.POINTER(ctypes.c_int)
        self.sweep = _bind(without.lab_sweep, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, cores, ctypes.c_int)
        self._anywhere = random.SystemRandom().random

    def call(self, kernel: Callable[[Any], Any], data: object, gate: int = -1, bell: int = -1) -> tuple[Any, Reading]:
        """Call the kernel between two readings of the clocks; what it raises is raised here.

        First wait for a byte on the socket `gate`, if one is given; afterwards send one on `bell`.
        """
        stamps = self._stamps
        output = self._call(kernel, data, stamps, gate, bell)
        return output, Reading(
            stamps.end_ns - stamps.start_ns, stamps.end_ticks - stamps.start_ticks, stamps.cpu_ns, stamps.switches
        )

    def row(self, socket: int, limit_s: float) -> "Row":
        """Open a waiting worker's gate; return what this process's clock says of what followed.

        Raises TimeoutError, or ConnectionError when the worker is gone.
        """
        window, digest = (ctypes.c_int64 * 3)(), ctypes.c_uint64()
        match self._row(socket, int(limit_s * 1000), window, digest):
            case 0:
                return Row(window[1] - window[0], window[2] - window[1], digest.value)
            case 1:
                raise TimeoutError
            case _:
                raise ConnectionError

    def settle(self, threads: int) -> int:
        """Wait until the process's other threads rest; return the ns of CPU time they went on for, 0 for a moment's."""
        return self._settle(SETTLE_NS, SETTLE_LIMIT_NS, SPIN_NS * max(1, threads - 1))

    def pin(self, places: Sequence[tuple[int, int]], socket: int = -1) -> int:
        """Return the digest of bytes at (address, size), each read from somewhere nobody knows beforehand.

        It is sent at once on `socket`, if one is given.
        """
        count = len(places)
        starts, sizes = (
            (ctypes.c_void_p * count)(*(p for p, _ in places)),
            (ctypes.c_size_t * count)(*(n for _, n in places)),
        )
        return self._pin(socket, starts, sizes, count, self._anywhere())


def _bind(function: Any, result: Any, *arguments: Any) -> Callable[..., Any]:
    function.restype, function.argtypes = result, arguments
    return function
