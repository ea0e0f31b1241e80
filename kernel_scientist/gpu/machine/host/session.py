"""A process's connection of the stand-in for HIP's runtime to a simulated GPU.

Errors cannot cross the host code, which is C++: they are kept, the host code gets an error code of HIP, and `check`
raises them when it has returned.
"""

import ctypes
import functools
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from kernel_scientist.gpu.machine.host.device import ArgumentSlot, Device, HostLaunch
from kernel_scientist.gpu.machine.memory import Copy

PLACES = (None, False, True)
"""Whether memory is the host's, by what the stand-in says of it."""
CLOCK_KHZ = 2_100_000
"""The clock rate that queries return; nothing is timed."""


class HostError(RuntimeError):
    """What HIP's runtime refuses a submission, in one sentence."""

    def __init__(self, function: str, reason: str, is_limit: bool = False) -> None:
        """`is_limit`: whether a device would do it, and the stand-in does not."""
        super().__init__(f"{function}: {reason}")
        self.function, self.reason, self.is_limit = function, reason, is_limit
        self.place: tuple[str, int] | None = None
        """File and line of the launch that was refused, as the compiler counts them; None: not known, or no launch."""


class _Needs(Structure):
    _fields_ = [(name, c_int32) for name in ("registers", "lds_bytes", "scratch_bytes", "most_threads")]


class _DeviceFacts(Structure):
    _fields_ = [
        *((name, c_char_p) for name in ("name", "arch")),
        ("memory_bytes", c_uint64),
        *((name, c_int32) for name in ("units", "lds_bytes", "l2_bytes", "clock_khz")),
    ]


_WORDS = POINTER(c_uint32)
_SIGNATURES: dict[str, Any] = {
    "load": CFUNCTYPE(c_int, c_void_p, c_uint64, POINTER(c_uint64)),
    "launch": CFUNCTYPE(c_int, c_uint64, c_char_p, _WORDS, _WORDS, c_void_p, c_void_p, c_uint64, c_uint64, c_int),
    "symbol": CFUNCTYPE(c_int, c_uint64, c_char_p, POINTER(c_uint64), POINTER(c_uint64)),
    "needs": CFUNCTYPE(c_int, c_uint64, c_char_p, POINTER(_Needs)),
    "resident": CFUNCTYPE(c_int, c_uint64, c_char_p, c_uint32, c_uint64, POINTER(c_int32)),
    "allocated": CFUNCTYPE(None, c_uint64, c_uint64),
    "freed": CFUNCTYPE(None, c_uint64),
    "written": CFUNCTYPE(None, c_uint64, c_uint64),
    "copied": CFUNCTYPE(None, c_uint64, c_uint64, c_uint64, c_int, c_int),
    "use": CFUNCTYPE(None, c_int),
    "refused": CFUNCTYPE(None, c_char_p, c_char_p, c_int),
}


class _Machine(Structure):
    """As `Machine` in `native/state.h`."""

    _fields_ = [("facts", _DeviceFacts), *_SIGNATURES.items()]


class Session:
    """The stand-in of this process, connected to a device. It must outlive the submission's modules."""

    def __init__(self, library: Path, device: Device) -> None:
        """`library`: the built stand-in (`library.path`)."""
        self._device, self._errors = device, list[BaseException]()
        self._library = ctypes.CDLL(str(library))
        facts = device.facts
        self._machine = _Machine(
            _DeviceFacts(
                facts.name.encode(),
                facts.arch.encode(),
                facts.memory_bytes,
                facts.units,
                facts.lds_bytes,
                facts.l2_bytes,
                CLOCK_KHZ,
            ),
            *(sort(self._kept(getattr(self, f"_{name}"))) for name, sort in _SIGNATURES.items()),
        )
        self._library.stand_in_use(ctypes.byref(self._machine))

    def check(self) -> None:
        """Raise the first error since the last check, and forget all: call it when host code has returned."""
        if not self._errors:
            return
        first = self._errors[0]
        self._errors.clear()
        self._library.stand_in_reset()
        raise first

    def _kept(self, function: Callable[..., None]) -> Callable[..., int]:
        """Return a function that keeps what is raised and returns whether anything was."""

        @functools.wraps(function)
        def call(*arguments: Any) -> int:
            try:
                function(*arguments)
            except BaseException as error:  # also an interrupt: C++ would lose it
                if isinstance(error, HostError):
                    error.place = self._place()
                self._errors.append(error)
                return 1
            return 0

        return call

    def _place(self) -> tuple[str, int] | None:
        """Return where the launch that is being made stands."""
        file = c_char_p()
        line: int = self._library.stand_in_line(ctypes.byref(file))
        return ((file.value or b"").decode(errors="replace"), line) if line else None

    def _load(self, code: int, size: int, out: Any) -> None:
        out[0] = self._device.load(ctypes.string_at(code, size))

    def _launch(
        self,
        code: int,
        kernel: bytes,
        grid: Any,
        block: Any,
        pointers: int,
        packed: int,
        size: int,
        lds: int,
        all_: int,
    ) -> None:
        name, shape = kernel.decode(), ((grid[0], grid[1], grid[2]), (block[0], block[1], block[2]))
        given = ctypes.string_at(packed, size) if packed else None
        arguments = _arguments(name, self._device.needs(code, name).arguments, pointers or 0, given)
        self._device.launch(HostLaunch(code, name, *shape, lds, arguments, bool(all_)))

    def _symbol(self, code: int, name: bytes, address: Any, size: Any) -> None:
        address[0], size[0] = self._device.symbol(code, name.decode())

    def _needs(self, code: int, kernel: bytes, out: Any) -> None:
        found = self._device.needs(code, kernel.decode())
        out[0] = _Needs(found.registers, found.lds_bytes, found.scratch_bytes, found.most_threads)

    def _resident(self, code: int, kernel: bytes, threads: int, lds: int, out: Any) -> None:
        out[0] = self._device.resident(code, kernel.decode(), threads, lds)

    def _allocated(self, address: int, size: int) -> None:
        self._device.allocated(address, size)

    def _freed(self, address: int) -> None:
        self._device.freed(address)

    def _written(self, address: int, size: int) -> None:
        self._device.written(address, size)

    def _copied(self, to: int, source: int, size: int, to_place: int, source_place: int) -> None:
        self._device.copied(Copy(to, source or None, size, PLACES[to_place], PLACES[source_place]))

    def _use(self, begins: int) -> None:
        self._device.use(bool(begins))

    def _refused(self, function: bytes, reason: bytes, is_limit: int) -> None:
        raise HostError(function.decode(), reason.decode(), bool(is_limit))


def _arguments(kernel: str, layout: Sequence[ArgumentSlot], pointers: int, packed: bytes | None) -> bytes:
    """Return a launch's block of arguments, from pointers to them or from what the host code packed itself.

    Raises HostError if it packed less than the kernel takes.
    """
    size = max((offset + length for offset, length in layout), default=0)
    if packed is not None:
        if len(packed) < size:
            reason = f"{kernel} takes {size} bytes of arguments and was given {len(packed)}"
            raise HostError("hipModuleLaunchKernel", reason)
        return packed
    block = bytearray(size)
    if layout and not pointers:
        raise HostError("hipLaunchKernel", f"{kernel} takes {len(layout)} arguments and was given none")
    for number, (offset, length) in enumerate(layout):
        place = c_void_p.from_address(pointers + number * ctypes.sizeof(c_void_p)).value
        block[offset : offset + length] = ctypes.string_at(place or 0, length)
    return bytes(block)
