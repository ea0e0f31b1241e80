"""How often code runs, when the compiler put rounds of a loop together or outside of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.gpu.model.issue import issued
from kernel_scientist.gpu.model.launch import Traffic
from kernel_scientist.records.evaluation import CodeObject

MFMA = "v_mfma_f32_32x32x16_fp8_fp8"
FLOPS = 2.0 * 32 * 32 * 16


def code(*mix: dict[str, int]) -> CodeObject:
    return CodeObject(kernel="k", arch="gfx942", digest="", num_warps=4, vgpr=64, mix=mix)


def traffic(*trips: float, asked: float = 0.0, flops: float = 0.0) -> Traffic:
    return Traffic(10, 10 * asked, 0.0, 0.0, 0.0, {"fp8e4b8": 10 * flops} if flops else {}, trips)


@given(st.sampled_from([1, 2, 4, 8]), st.integers(2, 40))
def test_rounds_that_the_compiler_put_together_count_once(unrolled: int, times: int) -> None:
    trips = unrolled * times
    loads = {"vmem_load 128": unrolled, "valu": 10 * unrolled}
    asked = trips * 16.0 * 64 * 4  # bytes of a program: a load of 16 bytes per lane in every round
    seen = issued(code({}, loads), traffic(trips, asked=asked))
    assert seen.vector == pytest.approx(10 * trips * 4) and seen.rounds == pytest.approx(times)


@given(st.integers(4, 60), st.integers(0, 2))
def test_rounds_outside_of_a_pipelined_loop_count_once(trips: int, peeled: int) -> None:
    per_round = {MFMA: 8, "valu": 100}
    around = {MFMA: 8 * peeled, "valu": 100 * peeled} if peeled else {}
    seen = issued(code(around, per_round), traffic(trips, flops=trips * 8 * FLOPS * 4))
    assert seen.vector == pytest.approx(trips * 100 * 4)


@pytest.mark.parametrize("straight", ["outer", "inner", "neither"])
def test_of_two_loops_the_one_that_became_straight_code_is_found(straight: str) -> None:
    outer, inner = 3, 64
    copies = {"outer": outer, "inner": inner, "neither": 1}[straight]
    per_round = {MFMA: 2 * copies, "valu": 50 * copies}
    mix = [{}, {}, per_round] if straight == "neither" else [{}, per_round]
    seen = issued(code(*mix), traffic(outer, inner, flops=outer * inner * 2 * FLOPS * 4))
    assert seen.vector == pytest.approx(outer * inner * 50 * 4)


def test_loads_that_all_lanes_repeat_are_no_unrolled_loop() -> None:
    seen = issued(code({}, {"vmem_load 32": 1, "valu": 1}), traffic(50, asked=50 * 4.0))  # one number, 256 lanes
    assert seen.vector == pytest.approx(50 * 4)


def test_waves_that_compute_the_same_elements_are_no_unrolled_loop() -> None:
    """A tile of 16 x 32 with four waves: its two 16 x 16 products are computed twice."""
    trips, moved = 56, {"vmem_load 128": 1}
    seen = issued(
        code({}, {MFMA: 2, "valu": 10, **moved}), traffic(trips, asked=trips * 16.0 * 64 * 4, flops=trips * 4 * FLOPS)
    )
    assert seen.vector == pytest.approx(trips * 10 * 4) and seen.rounds == trips
    assert seen.flops == pytest.approx(trips * 2 * FLOPS)


@pytest.mark.parametrize(("before", "prefetched"), [(4, True), (1, False), (0, False)])
def test_a_loop_is_pipelined_if_its_first_loads_precede_it(before: int, prefetched: bool) -> None:
    seen = issued(code({"vmem_load 128": before}, {"vmem_load 128": 4}), traffic(50))
    assert seen.prefetched == prefetched


def test_code_without_loops_runs_once() -> None:
    assert issued(code({"valu": 7, "trans": 1}), traffic(9)).vector == pytest.approx(7 * 4 + 16)
