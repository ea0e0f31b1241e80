"""What the verifier reads out of a worker's memory is what lies there."""

import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.harness.outputs import address
from kernel_scientist.harness.shim import LINE, Shim, _Line, _Place
from kernel_scientist.languages import gxx

LENGTHS = st.integers(0, 3000) | st.sampled_from([64, 64 << 10, 256 << 10, 300 << 10])
SIZES = st.lists(LENGTHS, min_size=1, max_size=20)


@pytest.fixture(scope="module")
def shim() -> Shim:
    return Shim(str(gxx.shim()))


@given(SIZES, st.integers(0, 1 << 32))
def test_pieces_are_what_lies_there(shim: Shim, sizes: list[int], seed: int) -> None:
    rng = random.Random(seed)
    buffers = [bytearray(rng.randbytes(size)) for size in sizes]
    places = (_Place * len(sizes))(*((address(b) if b else 0, len(b)) for b in buffers))
    some = [i for i, size in enumerate(sizes) if size]
    wanted: list[tuple[int, int, int]] = []
    for place in rng.choices(some, k=40) if some else []:
        offset = rng.randrange(-(-sizes[place] // LINE)) * LINE
        wanted.append((place, offset, min(LINE, sizes[place] - offset)))
    lines = (_Line * len(wanted))(*wanted)
    assert shim.peek(os.getpid(), places, lines, len(wanted))
    for line, (place, offset, size) in zip(lines, wanted, strict=True):
        assert bytes(line)[-LINE:][:size] == buffers[place][offset : offset + size]


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_what_is_not_there_cannot_be_read(shim: Shim, size: int) -> None:
    assert not shim.peek(os.getpid(), (_Place * 1)((8, size)), (_Line * 1)((0, 0, LINE)), 1)
