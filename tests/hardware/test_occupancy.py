"""Occupancy: hand-computed cases, and bounds that hold for every kernel."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.hardware import occupancy
from kernel_scientist.hardware.occupancy import LIMITS, Occupancy, limiting

SHAPES = st.tuples(
    st.sampled_from(sorted(LIMITS)),
    st.integers(1, 16),
    st.integers(0, 512),
    st.integers(0, 170_000),
    st.integers(0, 112),
)


@pytest.mark.parametrize(
    ("registers", "waves"),
    [(1, 8), (64, 8), (65, 7), (72, 7), (80, 6), (96, 5), (98, 4), (128, 4), (129, 3), (166, 3), (168, 3), (256, 2)],
)
def test_registers_alone_on_cdna3(registers: int, waves: int) -> None:
    assert occupancy.occupancy("gfx942", 4, registers, 0).waves == waves


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("gfx942", 4, 32, 0), Occupancy(8, "waves")),
        (("gfx942", 4, 98, 16384), Occupancy(4, "registers")),
        (("gfx942", 4, 98, 32768), Occupancy(2, "lds")),
        (("gfx942", 8, 166, 0), Occupancy(2, "workgroup")),  # 3 waves per SIMD are 12, not two workgroups of 8
        (("gfx942", 8, 164, 65536), Occupancy(2, "lds")),
        (("gfx942", 4, 256, 0), Occupancy(2, "registers")),
        (("gfx942", 4, 257, 0), Occupancy(1, "registers")),
        (("gfx942", 4, 512, 0), Occupancy(1, "registers")),
        (("gfx942", 4, 32, 65537), Occupancy(0, "lds")),
        (("gfx950", 4, 32, 65537), Occupancy(2, "lds")),
        (("gfx950", 8, 32, 163840), Occupancy(2, "lds")),
        (("gfx942", 16, 200, 0), Occupancy(0, "registers")),  # 16 waves do not start with 2 per SIMD
        (("gfx942", 1, 16, 65536), Occupancy(1, "lds")),
        (("gfx942", 4, 32, 0, 100), Occupancy(8, "waves")),
        (("gfx942", 4, 32, 0, 102), Occupancy(7, "scalars")),
        (("gfx942", 8, 32, 0, 102), Occupancy(6, "workgroup")),  # 7 waves per SIMD are 28, not four workgroups of 8
        (("sm_90", 4, 128, 0), Occupancy(4, "registers")),
        (("sm_90", 4, 32, 0), Occupancy(16, "waves")),
        (("sm_90", 4, 168, 114_688), Occupancy(2, "lds")),  # two blocks of 112 + 1 KiB in 228
        (("sm_90", 1, 32, 0), Occupancy(8, "workgroup")),  # 32 blocks
        (("sm_90", 4, 32, 232_449), Occupancy(0, "lds")),
    ],
)
def test_what_limits(call: tuple[str, int, int, int], expected: Occupancy) -> None:
    assert occupancy.occupancy(*call) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("gfx942", 4, 37, 0), ("waves",)),  # 12 would fit by registers
        (("gfx942", 4, 98, 16384), ("registers", "lds")),
        (("gfx942", 4, 96, 32768), ("lds",)),
    ],
)
def test_all_that_limits_is_named(call: tuple[str, int, int, int], expected: tuple[str, ...]) -> None:
    assert limiting(*call, scalars=42) == expected


def test_lone_waves_share_no_barriers() -> None:
    assert occupancy.resident("gfx942", 1, 32, 0) == 32
    assert occupancy.resident("gfx942", 2, 32, 0) == 16


@given(SHAPES)
def test_what_fits_fits(shape: tuple[str, int, int, int, int]) -> None:
    arch, num_warps, registers, lds, scalars = shape
    limit = LIMITS[arch]
    groups = occupancy.resident(*shape)
    waves = occupancy.occupancy(*shape).waves
    assert groups * lds <= limit.lds
    assert groups * num_warps <= limit.simds * limit.waves
    assert groups * num_warps * registers <= limit.simds * limit.registers
    assert groups * num_warps * scalars <= limit.simds * limit.scalars or not limit.scalars
    assert waves <= max(occupancy.waves_by_registers(arch, registers), 0)
    assert (waves == 0) == (groups == 0)


@given(SHAPES, st.integers(0, 64), st.integers(0, 4096))
def test_more_resources_never_fit_more(shape: tuple[str, int, int, int, int], more: int, bytes_: int) -> None:
    arch, num_warps, registers, lds, scalars = shape
    grown = (arch, num_warps, registers + more, lds + bytes_, scalars + more)
    assert occupancy.resident(*grown) <= occupancy.resident(*shape)


def test_an_unknown_architecture_is_named() -> None:
    with pytest.raises(ValueError, match=r"gfx906.*gfx942"):
        occupancy.occupancy("gfx906", 4, 32, 0)
