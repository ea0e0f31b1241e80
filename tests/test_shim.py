"""What the verifier reads out of a worker's memory is what lies there; how soon it hears."""

import os
import random
import re
import resource
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.compile import gxx
from kernel_scientist.workers.native import LINE, Hearing, NativeHarness, _Line, _Place
from kernel_scientist.workers.untrusted.outputs import address

LENGTHS = st.integers(0, 3000) | st.sampled_from([64, 64 << 10, 256 << 10, 300 << 10])
SIZES = st.lists(LENGTHS, min_size=1, max_size=20)


@pytest.fixture(scope="module")
def native() -> NativeHarness:
    return NativeHarness(str(gxx.native()))


@given(SIZES, st.integers(0, 1 << 32))
def test_pieces_are_what_lies_there(native: NativeHarness, sizes: list[int], seed: int) -> None:
    rng = random.Random(seed)
    buffers = [bytearray(rng.randbytes(size)) for size in sizes]
    places = (_Place * len(sizes))(*((address(b) if b else 0, len(b)) for b in buffers))
    some = [i for i, size in enumerate(sizes) if size]
    wanted: list[tuple[int, int, int]] = []
    for place in rng.choices(some, k=40) if some else []:
        offset = rng.randrange(-(-sizes[place] // LINE)) * LINE
        wanted.append((place, offset, min(LINE, sizes[place] - offset)))
    lines = (_Line * len(wanted))(*wanted)
    assert native.peek(os.getpid(), places, lines, len(wanted))
    for line, (place, offset, size) in zip(lines, wanted, strict=True):
        assert bytes(line)[-LINE:][:size] == buffers[place][offset : offset + size]


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_what_is_not_there_cannot_be_read(native: NativeHarness, size: int) -> None:
    assert not native.peek(os.getpid(), (_Place * 1)((8, size)), (_Line * 1)((0, 0, LINE)), 1)


def test_the_verifier_hears_first_where_it_may_and_is_as_before_then(native: NativeHarness) -> None:
    before = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, os.getpriority(os.PRIO_PROCESS, 0)
    allowed = in_a_fork(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))) == 0
    assert (native.hearing is Hearing.FIRST) == allowed
    after = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, os.getpriority(os.PRIO_PROCESS, 0)
    assert after == before


def test_without_privilege_the_verifier_hears_soon_where_the_system_knows_time_slices(native: NativeHarness) -> None:
    def ask() -> int:
        resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
        if os.getuid() == 0:
            os.setuid(65534)
        return native.hearing

    version = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    assert in_a_fork(ask) == (Hearing.SOON if version >= (6, 12) else Hearing.IN_TURN)


def in_a_fork(ask: Callable[[], int | None]) -> int:
    """Return what a child makes of it, or 255 when the system refuses."""
    if (pid := os.fork()) == 0:
        status = 255
        try:
            status = ask() or 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
