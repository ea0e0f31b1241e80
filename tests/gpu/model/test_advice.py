"""What the launch claims and the code does not do gains nothing; what would help is said in numbers."""

import re
from dataclasses import replace

import pytest

from kernel_scientist.calibrate import tables
from kernel_scientist.calibrate.suite import CalibrationKernel
from kernel_scientist.gpu.capture import inspect
from kernel_scientist.gpu.model import advice, predict
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.gpu.model.issue import Issue
from kernel_scientist.gpu.model.launch import Placement, Traffic
from kernel_scientist.gpu.model.predict import KernelLoad
from kernel_scientist.hardware import gpus, occupancy
from kernel_scientist.records.evaluation import CodeObject
from kernel_scientist.records.kernel import Work

SHAPE = tables.Shape(128, 512, 7168)


def entry() -> CalibrationKernel:
    return tables.labels([SHAPE], pool=0)[0].best


def time_us(source: str) -> float:
    found = inspect.seen(source, {"c": entry().inputs}, gpus.MI300X, 120, counts=True)
    assert found.report.ok, found.report.log
    return predict.time_us(gpus.MI300X, found.loads("c"), Constants())


@pytest.mark.slow
@pytest.mark.parametrize("stages", [2, 8])
def test_stages_at_the_launch_that_the_loop_refuses_gain_nothing(stages: int) -> None:
    source = entry().source
    plain = source.replace("in range(k // BLOCK_K)", "in tl.range(k // BLOCK_K, num_stages=1)")
    assert plain != source
    claimed = re.sub(r'"num_stages": \d+', f'"num_stages": {stages}', plain)
    honest = re.sub(r'"num_stages": \d+', '"num_stages": 1', source)
    assert time_us(claimed) == pytest.approx(time_us(honest), rel=0.02)
    assert time_us(source) < 0.9 * time_us(claimed), "a real pipeline is faster"


def code(**changes: object) -> CodeObject:
    given = {"num_warps": 8, "vgpr": 162, "lds_bytes": 16384}
    return CodeObject.model_validate({"kernel": "k", "arch": "gfx942", "digest": "", **given, **changes})


def predicted(some: CodeObject) -> tuple[str, ...]:
    flops = 56 * 16 * 2.0 * 16 * 16 * 32  # 16 instructions of 16x16x32 in each of 56 rounds
    traffic = Traffic(2432, 1e9, 1e9, 3e8, 1e8, {"fp8": 2432 * 8 * flops})
    issue = Issue(vector=56 * 160, l1=57 * 64, flops=flops, rounds=56, ahead=1.0)
    work = Work(flops=1e9, bytes=1e6, dtype="fp8")
    return predict.predict(gpus.MI300X, "c", work, [KernelLoad(some, traffic, issue)], Constants()).words


def test_advice_is_for_the_kernel_at_hand() -> None:
    plain, multiplies = code(mfma={}), code(mfma={"v_mfma_f32_16x16x32_fp8_fp8": 16})

    def words(some: CodeObject, limit: str, waits: float = 0.0) -> str:
        every = {limit: 1.0}
        return "\n".join(advice.words(gpus.MI300X, some, Placement.of(gpus.MI300X, some, 64), limit, every, 0.0, waits))

    for limit in ("vector", "l2", "cache"):
        found = words(plain, limit)
        assert not [word for word in ("split-K", "matrix units", "share tiles") if word in found], found
        assert "several programs for one row" in found
        assert "split-K" in words(multiplies, limit)
    assert "around the matrix units" in words(multiplies, "vector")
    assert "loads ahead of use" not in words(plain, "latency", 0.01)
    assert "(waits for memory are 40 % of it): more programs per CU, loads ahead of use, fewer" in words(
        plain, "latency", 0.4
    )


def test_what_would_let_another_workgroup_in_is_said_in_numbers() -> None:
    assert any("128 registers instead of 162 would let one more workgroup" in line for line in predicted(code()))
    lds = predicted(code(vgpr=64, lds_bytes=40000))
    assert any("32768 bytes of LDS instead of 40000 would let one more workgroup" in line for line in lds)


def test_registers_that_are_reserved_and_not_used_are_named_as_such() -> None:
    words = "256 registers reserved (`waves_per_eu`) instead of 257 would let one more workgroup"
    assert any(words in line for line in predicted(code(num_warps=4, vgpr=80, reserved_vgpr=257)))


@pytest.mark.parametrize(
    "some",
    [
        code(),
        code(vgpr=64, lds_bytes=40000),
        code(num_warps=4, vgpr=200, agpr=100),
        code(num_warps=4, vgpr=80, reserved_vgpr=257),
    ],
)
def test_with_what_is_said_one_more_workgroup_fits_and_with_more_it_does_not(some: CodeObject) -> None:
    more = advice.roomier(some)
    assert more is not None

    def fits(c: CodeObject) -> int:
        return occupancy.resident(c.arch, *c.needs)

    assert fits(more) == fits(some) + 1
    grown = [
        more.model_copy(update={"vgpr": more.vgpr + 8}),
        more.model_copy(update={"lds_bytes": more.lds_bytes + 512}),
    ]
    assert min(fits(c) for c in grown) <= fits(some)


CLEAN = Issue(vector=500 * 160, l1=500 * 64, rounds=500)
SPILLED = replace(CLEAN, l1=500 * (64 + 160), spilled_bytes=500 * 40 * 4 * 64.0, reloads=500)
"""40 registers are stored to scratch memory and loaded again in each of 500 rounds."""


def test_a_spill_in_a_loop_costs_time() -> None:
    traffic = Traffic(304, 1e8, 1e8, 3e7, 1e7)
    times = [predict.time_us(gpus.MI300X, [KernelLoad(code(), traffic, one)], Constants()) for one in (CLEAN, SPILLED)]
    assert times[1] > 1.2 * times[0]


def test_scratch_memory_that_l2_does_not_hold_comes_from_further_away() -> None:
    traffic = Traffic(2432, 1e8, 1e8, 3e7, 1e7)
    small, large = (code(vgpr=64, scratch_bytes=size) for size in (16, 512))
    costs = [
        predict.estimate(gpus.MI300X, KernelLoad(one, traffic, SPILLED), Constants()).costs for one in (small, large)
    ]
    assert costs[0].cache < costs[1].cache and costs[0].l2 == costs[1].l2


def test_a_loop_that_loads_ahead_does_not_wait() -> None:
    traffic, waits = Traffic(304, 1e6, 1e6, 1e6, 1e6), Issue(vector=500 * 1600, l1=500 * 64, rounds=500)
    hidden = predict.time_us(gpus.MI300X, [KernelLoad(code(), traffic, replace(waits, ahead=1.0))], Constants())
    assert predict.time_us(gpus.MI300X, [KernelLoad(code(), traffic, waits)], Constants()) > 1.3 * hidden
