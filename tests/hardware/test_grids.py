"""Which grids a target launches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.hardware import grids


@pytest.mark.parametrize(
    ("arch", "grid", "threads", "told"),
    [
        ("gfx942", (2**31 - 1, 65536, 65536), 1, ""),
        ("gfx942", (2**31, 1, 1), 1, "2147483648 workgroups in x, gfx942 launches at most 2147483647"),
        ("gfx950", (1, 65537, 1), 256, "65537 workgroups in y, gfx950 launches at most 65536"),
        ("gfx942", (1, 1, 70000), 64, "70000 workgroups in z"),
        ("gfx942", (2**24, 1, 1), 256, "4294967296 work-items in x, gfx942 has at most 4294967295"),
        ("gfx942", (2**24 - 1, 1, 1), 256, ""),
        ("sm_90", (2**24, 65535, 65535), 256, ""),
        ("sm_90", (1, 65536, 1), 32, "65536 workgroups in y, sm_90 launches at most 65535"),
    ],
)
def test_limits_are_those_of_the_target(arch: str, grid: grids.Grid, threads: int, told: str) -> None:
    found = grids.refusal(arch, grid, threads)
    assert told in found and bool(found) == bool(told)


@given(st.tuples(*[st.integers(1, 2**33)] * 3), st.sampled_from([64, 128, 256, 512, 1024]))
def test_a_smaller_grid_is_never_refused_where_a_larger_one_is_not(grid: grids.Grid, threads: int) -> None:
    x, y, z = grid
    if not grids.refusal("gfx942", grid, threads):
        assert not grids.refusal("gfx942", (-(-x // 2), -(-y // 2), -(-z // 2)), threads)
