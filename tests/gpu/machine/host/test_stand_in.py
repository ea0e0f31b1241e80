"""The stand-in for HIP's runtime, called as compiled host code calls it; kernels go to a device that records them."""

import ctypes
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, c_char, c_char_p, c_float, c_int, c_size_t, c_uint, c_void_p

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.gpu.machine.host import library
from kernel_scientist.gpu.machine.host.device import ArgumentSlot, MemoryRange
from kernel_scientist.gpu.machine.host.session import HostError, Session
from kernel_scientist.gpu.toolchains import hip
from tests.gpu.machine.host.recorder import FACTS, Recorder

pytestmark = pytest.mark.skipif(
    not hip.HEADERS.exists() or shutil.which("g++") is None, reason="HIP's headers or g++ are missing"
)
INVALID_VALUE, NO_MEMORY, BAD_LAUNCH, NOT_SUPPORTED = 1, 2, 719, 801


class Hip:
    """The stand-in and its device."""

    def __init__(self) -> None:
        self.device = Recorder()
        self.session = Session(library.path(), self.device)
        self.native = ctypes.CDLL(str(library.path()))

    def __getattr__(self, name: str) -> Callable[..., int]:
        return self.native["hip" + name]

    def malloc(self, size: int) -> int:
        place = c_void_p()
        assert self.Malloc(byref(place), c_size_t(size)) == 0
        return place.value or 0

    def refused(self) -> str:
        """What `check` raises."""
        with pytest.raises(HostError) as told:
            self.session.check()
        return str(told.value)


@pytest.fixture
def stand_in() -> Iterator[Hip]:
    made = Hip()
    yield made
    made.native.stand_in_reset()


class Dim3(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in "xyz"]


def registered(stand_in: Hip, name: str = "kernel") -> ctypes.Array[c_char]:
    """Register a kernel as the compiler's constructor does; return its handle, whose address names it."""
    text = b"; assembly of " + name.encode()
    packed = struct.pack("8sQ", b"KSCODE1", len(text)) + text + b"\0"
    binary = ctypes.create_string_buffer(packed, len(packed))
    wrapper = (c_void_p * 3)(0x148504648, ctypes.addressof(binary), 0)
    stand_in.native.__hipRegisterFatBinary.restype = c_void_p
    code = stand_in.native.__hipRegisterFatBinary(wrapper)
    handle, plain = ctypes.create_string_buffer(8), c_char_p(name.encode())
    KEPT.extend((binary, wrapper, handle))
    stand_in.native.__hipRegisterFunction(c_void_p(code), handle, plain, plain, c_uint(0), *[None] * 5)
    stand_in.native.__hipRegisterVar(c_void_p(code), byref(handle, 4), plain, c_char_p(b"table"), 0, c_size_t(0), 0, 0)
    return handle


KEPT: list[object] = []


def launched(stand_in: Hip, handle: object, grid: Dim3, block: Dim3, arguments: Sequence[object], lds: int = 0) -> int:
    pointers = (c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])  # pyright: ignore[reportArgumentType]
    return stand_in.LaunchKernel(handle, grid, block, pointers, c_size_t(lds), None)


def test_a_launch_has_its_arguments_by_the_codes_own_layout(stand_in: Hip) -> None:
    stand_in.device.layout = (ArgumentSlot(0, 8), ArgumentSlot(8, 4), ArgumentSlot(16, 8), ArgumentSlot(24, 1))
    handle = registered(stand_in, "_Z4gemmPfidb")
    given = [c_void_p(0x1234), c_int(-2), ctypes.c_double(0.5), ctypes.c_bool(True)]
    assert launched(stand_in, handle, Dim3(3, 2, 1), Dim3(64, 4, 1), given, 512) == 0
    (launch,) = stand_in.device.launches
    assert (launch.kernel, launch.grid, launch.block) == ("_Z4gemmPfidb", (3, 2, 1), (64, 4, 1))
    assert launch.dynamic_lds == 512 and stand_in.device.codes == [b"; assembly of _Z4gemmPfidb"]
    assert launch.arguments == struct.pack("<QixxxxdB", 0x1234, -2, 0.5, 1)
    stand_in.session.check()


@given(st.lists(st.binary(min_size=1, max_size=64), max_size=20), st.integers(1, 8))
def test_arguments_of_any_size_arrive(values: list[bytes], align: int) -> None:
    stand_in, layout, offset = Hip(), list[ArgumentSlot](), 0
    for value in values:
        offset = -(-offset // align) * align
        layout.append(ArgumentSlot(offset, len(value)))
        offset += len(value)
    stand_in.device.layout = tuple(layout)
    blocks = [ctypes.create_string_buffer(value, len(value)) for value in values]
    assert launched(stand_in, registered(stand_in), Dim3(1, 1, 1), Dim3(1, 1, 1), blocks) == 0
    got = stand_in.device.launches[0].arguments
    assert [got[place : place + size] for place, size in layout] == values and len(got) == offset


def test_a_cooperative_launch_fits_on_the_device(stand_in: Hip) -> None:
    handle, block = registered(stand_in, "together"), Dim3(256, 1, 1)
    assert stand_in.LaunchCooperativeKernel(handle, Dim3(3 * 304, 1, 1), block, None, c_uint(64), None) == 0
    (launch,) = stand_in.device.launches
    assert launch.cooperative and launch.grid == (912, 1, 1) and launch.dynamic_lds == 64
    assert stand_in.LaunchCooperativeKernel(handle, Dim3(913, 1, 1), block, None, c_uint(64), None) == 720
    assert "913 blocks of together, and at most 912 run at a time" in stand_in.refused()


def test_a_module_is_launched_with_pointers_or_with_packed_arguments(stand_in: Hip) -> None:
    stand_in.device.layout = (ArgumentSlot(0, 4), ArgumentSlot(4, 4))
    module, function = c_void_p(), c_void_p()
    assert stand_in.ModuleLoadData(byref(module), c_char_p(b"; text of a module")) == 0
    assert stand_in.ModuleGetFunction(byref(function), module, c_char_p(b"own")) == 0
    packed, size = ctypes.create_string_buffer(struct.pack("<ii", 7, 8), 8), c_size_t(8)
    extra = (c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), 3)
    shape = [c_uint(n) for n in (2, 1, 1, 64, 1, 1, 0)]
    assert stand_in.ModuleLaunchKernel(function, *shape, None, None, extra) == 0
    seven, eight = c_int(7), c_int(8)
    pointers = (c_void_p * 2)(ctypes.addressof(seven), ctypes.addressof(eight))
    assert stand_in.ModuleLaunchKernel(function, *shape, None, pointers, None) == 0
    assert [one.arguments for one in stand_in.device.launches] == [struct.pack("<ii", 7, 8)] * 2
    assert stand_in.device.codes == [b"; text of a module"] and stand_in.device.launches[0].kernel == "own"
    size.value = 4
    assert stand_in.ModuleLaunchKernel(function, *shape, None, None, extra) == BAD_LAUNCH
    assert "own takes 8 bytes of arguments and was given 4" in stand_in.refused()


@pytest.mark.parametrize(
    ("grid", "block", "said"),
    [
        ((0, 1, 1), (64, 1, 1), "no threads"),
        ((1, 1, 1), (64, 0, 1), "no threads"),
        ((1, 1, 1), (64, 32, 1), "2048 threads in a block, and the most are 1024"),
        ((1, 1, 1), (65536, 65536, 1), "4294967296 threads"),
        ((1 << 31, 1, 1), (64, 1, 1), "more than 2147483647 blocks"),
    ],
)
def test_a_launch_that_the_device_would_refuse(
    stand_in: Hip, grid: tuple[int, ...], block: tuple[int, ...], said: str
) -> None:
    assert launched(stand_in, registered(stand_in), Dim3(*grid), Dim3(*block), []) != 0
    assert said in stand_in.refused() and not stand_in.device.launches


def test_what_is_no_kernel_is_not_launched(stand_in: Hip) -> None:
    assert launched(stand_in, byref(c_int(3)), Dim3(1, 1, 1), Dim3(1, 1, 1), []) != 0
    assert stand_in.refused() == "hipLaunchKernel: the kernel that it is given is none"


def test_a_fault_is_raised_in_python_and_later_work_fails(stand_in: Hip) -> None:
    handle, stand_in.device.fault = registered(stand_in), RuntimeError("row 7 is outside")
    assert launched(stand_in, handle, Dim3(1, 1, 1), Dim3(1, 1, 1), []) == BAD_LAUNCH
    assert stand_in.GetLastError() == BAD_LAUNCH and stand_in.DeviceSynchronize() == BAD_LAUNCH
    assert launched(stand_in, handle, Dim3(1, 1, 1), Dim3(1, 1, 1), []) == BAD_LAUNCH
    place = stand_in.malloc(16)
    assert stand_in.Memset(c_void_p(place), 1, c_size_t(16)) == BAD_LAUNCH
    assert len(stand_in.device.launches) == 1
    with pytest.raises(RuntimeError, match="row 7 is outside"):
        stand_in.session.check()
    stand_in.device.fault = None
    assert stand_in.GetLastError() == 0 and launched(stand_in, handle, Dim3(1, 1, 1), Dim3(1, 1, 1), []) == 0
    stand_in.session.check()


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(("malloc", "free", "set", "set32", "copy", "rows")),
        st.integers(0, 3),
        st.integers(0, 3),
        st.integers(0, 300),
        st.integers(0, 300),
        st.integers(0, 255),
    ),
    max_size=30,
)


@given(OPERATIONS)
def test_memory_is_what_a_model_of_it_says(operations: list[tuple[str, int, int, int, int, int]]) -> None:
    """Every call that stays inside its allocations does what it says, every other one is refused and does nothing."""
    stand_in, places, model = Hip(), dict[int, int](), dict[int, bytearray]()
    for kind, one, other, size, at, value in operations:
        if kind == "malloc" and one not in places and size:
            places[one], model[one] = stand_in.malloc(size), bytearray(size)
            ctypes.memset(places[one], 0, size)
            continue
        if one not in places or other not in places:
            continue
        to, length = c_void_p(places[one] + at), len(model[one])
        fits = at + size <= length
        if at >= length and kind != "free":
            continue  # the address is nobody's, and the memory of a host is not known
        if kind == "free":
            assert stand_in.Free(c_void_p(places.pop(one))) == 0
            del model[one]
        elif kind == "set":
            assert (stand_in.Memset(to, value, c_size_t(size)) == 0) == fits
            model[one][at : at + size] = bytes([value]) * size if fits else model[one][at : at + size]
        elif kind == "set32":
            fits = at + 4 * (size // 4) <= length
            assert (stand_in.MemsetD32(to, value, c_size_t(size // 4)) == 0) == fits
            new = struct.pack("<i", value) * (size // 4)
            model[one][at : at + len(new)] = new if fits else model[one][at : at + len(new)]
        elif kind == "copy":
            fits = fits and size <= len(model[other])
            content = bytes(model[other][:size])
            assert (stand_in.Memcpy(to, c_void_p(places[other]), c_size_t(size), 3) == 0) == fits
            model[one][at : at + size] = content if fits else model[one][at : at + size]
        elif one != other and at == 0 and min(length, len(model[other])) >= 8 * 10:
            call = [c_size_t(10), c_void_p(places[other]), c_size_t(10), c_size_t(7), c_size_t(8), 3]
            assert stand_in.Memcpy2D(to, *call) == 0
            for row in range(8):
                model[one][10 * row : 10 * row + 7] = model[other][10 * row : 10 * row + 7]
    assert stand_in.device.memory == {places[name]: len(content) for name, content in model.items()}
    for name, content in model.items():
        assert ctypes.string_at(places[name], len(content)) == bytes(content)
        stand_in.Free(c_void_p(places[name]))
    stand_in.native.stand_in_reset()


def test_memory_that_is_not_there_is_refused_in_a_sentence(stand_in: Hip) -> None:
    place = stand_in.malloc(100)
    assert place % 256 == 0 and stand_in.device.memory == {place: 100}
    assert stand_in.Free(c_void_p(place + 4)) == INVALID_VALUE
    assert stand_in.refused() == "hipFree: its pointer is not the start of an allocation that is in use"
    assert stand_in.Memset(c_void_p(place + 90), 0, c_size_t(11)) == INVALID_VALUE
    assert stand_in.refused() == "hipMemset: its 11 bytes go beyond the end of an allocation"
    assert stand_in.Memcpy(c_void_p(place), None, c_size_t(11), 1) == INVALID_VALUE
    assert stand_in.refused() == "hipMemcpy: one of its pointers is null"
    assert stand_in.Free(c_void_p(place)) == 0 and stand_in.Free(c_void_p(place)) == INVALID_VALUE
    assert stand_in.Free(None) == 0 and not stand_in.device.memory


def test_the_devices_memory_is_bounded(stand_in: Hip) -> None:
    place, free, total = c_void_p(), c_size_t(), c_size_t()
    assert stand_in.Malloc(byref(place), c_size_t(FACTS.memory_bytes + 1)) == NO_MEMORY and not place.value
    kept = stand_in.malloc(1 << 20)
    assert stand_in.MemGetInfo(byref(free), byref(total)) == 0 and total.value == FACTS.memory_bytes
    assert total.value - free.value >= 1 << 20
    assert stand_in.Free(c_void_p(kept)) == 0
    stand_in.native.hipGetErrorString.restype = c_char_p
    assert stand_in.native.hipGetErrorString(NO_MEMORY) == b"out of memory"


def test_variables_of_the_device_are_copied_within_their_bounds(stand_in: Hip) -> None:
    table = ctypes.create_string_buffer(16)
    stand_in.device.variables["table"] = MemoryRange(ctypes.addressof(table), 16)
    symbol = byref(registered(stand_in), 4)
    four, back, place = c_int(4), c_int(), c_void_p()
    assert stand_in.MemcpyToSymbol(symbol, byref(four), c_size_t(4), c_size_t(12), 1) == 0
    assert stand_in.MemcpyFromSymbol(byref(back), symbol, c_size_t(4), c_size_t(12), 2) == 0 and back.value == 4
    assert stand_in.GetSymbolAddress(byref(place), symbol) == 0 and place.value == ctypes.addressof(table)
    assert stand_in.MemcpyToSymbol(symbol, byref(four), c_size_t(4), c_size_t(13), 1) == INVALID_VALUE
    assert "copies 4 bytes at 13 of a variable of 16" in stand_in.refused()
    assert stand_in.MemcpyToSymbol(byref(four), byref(four), c_size_t(4), c_size_t(0), 1) != 0
    assert "its symbol is no variable of the device" in stand_in.refused()


def test_streams_and_events_have_nothing_to_wait_for(stand_in: Hip) -> None:
    stream, start, end, ms = c_void_p(), c_void_p(), c_void_p(), c_float(1)
    assert stand_in.StreamCreate(byref(stream)) == 0 and stream.value
    assert stand_in.EventCreate(byref(start)) == stand_in.EventCreateWithFlags(byref(end), 0) == 0
    assert stand_in.EventRecord(start, stream) == stand_in.EventSynchronize(end) == stand_in.StreamQuery(stream) == 0
    assert stand_in.EventElapsedTime(byref(ms), start, end) == 0 and ms.value == 0
    assert stand_in.StreamWaitEvent(stream, end, 0) == stand_in.StreamDestroy(stream) == stand_in.EventDestroy(end) == 0


def test_the_device_and_its_kernels_are_described(stand_in: Hip) -> None:
    value, handle = c_int(), registered(stand_in)
    for attribute, expected in ((87, 64), (63, 304)):
        assert stand_in.DeviceGetAttribute(byref(value), attribute, 0) == 0 and value.value == expected
    name = ctypes.create_string_buffer(64)
    assert stand_in.DeviceGetName(name, 64, 0) == 0 and name.value == FACTS.name.encode()
    properties = ctypes.create_string_buffer(4096)
    assert stand_in.GetDeviceProperties(properties, 0) == 0 and b"gfx942:sramecc+:xnack-" in properties.raw
    blocks, grid = c_int(), c_int()
    active = stand_in.OccupancyMaxActiveBlocksPerMultiprocessor
    assert active(byref(blocks), handle, 256, c_size_t(0)) == 0 and blocks.value == 3
    assert stand_in.OccupancyMaxPotentialBlockSize(byref(grid), byref(blocks), handle, c_size_t(0), 0) == 0
    assert (grid.value, blocks.value) == (3 * 304, 256)
    assert stand_in.SetDevice(0) == 0 and stand_in.SetDevice(1) != 0
    assert stand_in.refused() == "hipSetDevice: one GPU is simulated, and device 1 is not there"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("StreamBeginCapture", "graphs are not simulated"),
        ("GraphLaunch", "graphs are not simulated"),
        ("LaunchCooperativeKernelMultiDevice", "one GPU is simulated"),
        ("IpcGetMemHandle", "one GPU is simulated"),
        ("rtcCompileProgram", "compiled at run time"),
    ],
)
def test_what_is_not_simulated_is_refused_by_name(stand_in: Hip, name: str, reason: str) -> None:
    assert getattr(stand_in, name)() == NOT_SUPPORTED
    said = stand_in.refused()
    assert said.startswith(f"hip{name}: ") and reason in said and "\n" not in said
