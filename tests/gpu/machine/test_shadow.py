"""What a checking run knows of memory: what nobody wrote is noted by ranges, and by pages once it is looked for."""

import resource
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_scientist.gpu.machine import build, library, memory
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.memory import LARGE, Memory
from kernel_scientist.gpu.machine.sampler import undone
from kernel_scientist.gpu.machine.shadow import Shadow
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.records import environment

PAGE, PAGES, PATTERN = 4096, 6, 0x5A
TOOLS = hip.find()
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("poison", "define", "settle", "put", "look")),
        st.integers(0, PAGES * PAGE),
        st.one_of(st.integers(0, PAGES * PAGE), st.integers(0, PAGES).map(lambda n: n * PAGE)),
    ),
    max_size=12,
)


@pytest.fixture(scope="module")
def machine() -> Library:
    return library.loaded(build.build(environment.cache_folder() / "machine"))


def pages() -> tuple[np.ndarray[Any, Any], int]:
    """Return some whole pages of memory, all zero, and their address."""
    raw = np.zeros((PAGES + 1) * PAGE, np.uint8)
    skipped = -int(raw.ctypes.data) % PAGE
    return raw[skipped : skipped + PAGES * PAGE], int(raw.ctypes.data) + skipped


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_a_byte_is_undefined_from_when_nobody_wrote_it_until_somebody_does(
    machine: Library, steps: list[tuple[str, int, int]]
) -> None:
    shadow, (content, place) = Shadow(machine), pages()
    undefined, kept = np.zeros(content.size, bool), np.zeros(content.size, bool)  # kept: a wave stored it
    for step, start, size in steps:
        part = slice(start, min(start + size, content.size))
        count = part.stop - part.start
        if step == "poison":
            shadow.poison(place + start, count, 7)
            undefined[part], kept[part] = True, False
        elif step == "define":
            shadow.define(place + start, count)
            undefined[part] = kept[part] = False
        elif step == "put" and start % 4 == 0 == count % 4:
            shadow.put(place + start, np.full(count, 3, np.uint8), 1)
            undefined[part] = kept[part] = True
        elif step == "settle":
            nobodys = undefined[part] & ~kept[part]
            expected = np.where(nobodys, PATTERN, content[part])
            shadow.settle(place + start, count, PATTERN)
            whole = nobodys | ~undefined[part]
            assert np.array_equal(content[part][whole], expected[whole])
            undefined[part] = kept[part] = False
        elif count:
            delta = shadow.delta(place + start, count)
            assert np.array_equal(np.zeros(count, bool) if delta is None else delta != 0, undefined[part])
    delta = shadow.delta(place, content.size)
    assert np.array_equal(np.zeros(content.size, bool) if delta is None else delta != 0, undefined)


def test_what_nobody_wrote_takes_up_no_memory_before_it_is_looked_for(machine: Library) -> None:
    shadow, start, size = Shadow(machine), 1 << 40, 1 << 36
    shadow.poison(start + 100, size, 7)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    looked = shadow.delta(start + size // 2 - 50, 200)
    assert looked is not None and looked.all() and len(set(looked.tolist())) > 4
    again = shadow.delta(start + size // 2 - 50, 200)
    assert again is not None and np.array_equal(again, looked), "the same bytes each time"
    shadow.define(start + 5000, size // 2)
    assert shadow.delta(start + size // 4, 4096) is None
    ends = [shadow.delta(start + at, 16) for at in (100, 4990, size + 80)]
    assert [None if one is None else int((one != 0).sum()) for one in ends] == [16, 10, 16]
    shadow.define(start, 2 * size)
    assert shadow.delta(start + size - 4096, 4096) is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10, "KiB"


def test_a_large_allocation_is_cleared_without_taking_up_memory() -> None:
    block = np.empty(LARGE + 3 * PAGE, np.uint8)
    block[:2] = block[-2:] = 9
    place = int(block.ctypes.data)
    memory.clear(place + 1, block.size - 2)
    assert (block[0], block[-1]) == (9, 9) and not block[1:-1].any()
    memory.fill(place, block.size, 0xA5)
    assert (block[:LARGE] == 0xA5).all() and not block[LARGE:].any()


@pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
def test_memory_is_as_before_after_what_was_undone(machine: Library) -> None:
    made = hip.compile_hip("#include <hip/hip_runtime.h>\n__global__ void kernel(int* x) { *x = 1; }\n", "gfx942", [])
    assert made.ok, made.log
    block, allowed = np.zeros(5 << 20, np.uint8), Memory()
    block[3 << 20] = 7
    before = block.copy()
    allowed.add(int(block.ctypes.data), block.nbytes)
    with undone(allowed, Code(machine, made.assembly)):
        block[::1000] += 1
    assert np.array_equal(block, before)
