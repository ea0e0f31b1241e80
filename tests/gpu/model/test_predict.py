"""The performance model across launches: what one leaves in the last level, the next does not fetch from memory."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.gpu.model import constants, predict
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.gpu.model.issue import Issue, matrix_flops
from kernel_scientist.gpu.model.launch import Traffic
from kernel_scientist.hardware import gpus
from kernel_scientist.records.evaluation import CodeObject

MIB = float(1 << 20)
CODE = CodeObject(kernel="k", arch="gfx942", digest="", num_warps=4, vgpr=64)


def load(**storages: float) -> predict.KernelLoad:
    """A launch that touches all of its arguments once, by size in MiB."""
    sizes = {name: size * MIB for name, size in storages.items()}
    total = sum(sizes.values())
    return predict.KernelLoad(CODE, Traffic(1216, total, total, total, total, {}, sizes), Issue())


def hbm_us(*loads: predict.KernelLoad) -> float:
    return sum(one.costs.hbm for one in predict._each(gpus.MI300X, loads, Constants()))


def test_partial_sums_are_read_from_the_cache_that_they_were_written_to() -> None:
    multiply, add = load(a=64, b=64, partial=100), load(partial=100, out=25)
    other = load(elsewhere=100, out=25)
    saved = hbm_us(multiply, other) - hbm_us(multiply, add)
    assert saved == pytest.approx(100 * MIB / (gpus.MI300X.memory_gbps * Constants().hbm) * 1e-3)
    assert predict.time_us(gpus.MI300X, [multiply, add], Constants()) < predict.time_us(
        gpus.MI300X, [multiply, other], Constants()
    )


def test_what_has_been_driven_out_is_fetched_again() -> None:
    first, between, last = load(x=10), load(y=4000), load(x=10, out=10)
    assert hbm_us(first, last) < hbm_us(first, between, last) - hbm_us(between)
    assert hbm_us(first, between, last) > 0.95 * (hbm_us(first) + hbm_us(between) + hbm_us(last))


def test_tensors_without_memory_are_not_taken_for_one() -> None:
    assert hbm_us(load(**{"0": 10}), load(**{"0": 10})) == 2 * hbm_us(load(**{"0": 10}))


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.floats(0.1, 900), min_size=1), min_size=1, max_size=4))
def test_it_is_never_more_than_all_launches_alone_nor_less_than_each_thing_once(
    all_sizes: list[dict[str, float]],
) -> None:
    loads = [load(**sizes) for sizes in all_sizes]
    alone = sum(hbm_us(one) for one in loads)
    largest = {name: max(s.get(name, 0.0) for s in all_sizes) for sizes in all_sizes for name in sizes}
    once = sum(largest.values()) * MIB / (gpus.MI300X.memory_gbps * Constants().hbm) * 1e-3
    smallest = {name: min(s[name] for s in all_sizes if name in s) for name in largest}
    assert hbm_us(*loads) <= alone * (1 + 1e-9)
    assert hbm_us(*loads) >= once * min(smallest[n] / largest[n] for n in largest) * (1 - 1e-9)


def test_the_error_that_is_told_is_that_of_the_constants_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(tmp_path))
    assert constants.held_out("MI300X") == "6.5 % in the median and 32 % at worst", "of published times"
    assert constants.held_out("H100") == ""
    constants.keep("MI300X", constants.Constants(), {"fit": {"error": 0.1234}})
    assert constants.held_out("MI300X") == "12.3 % in the median"
    constants.keep("MI300X", constants.Constants(), {})
    assert constants.held_out("MI300X") == ""


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("v_mfma_f32_32x32x16_fp8_fp8", 32_768),
        ("v_mfma_f32_16x16x16_bf16", 8_192),
        ("v_mfma_f32_32x32x4_2b_bf16", 16_384),
        ("v_mfma_f32_4x4x4_16b_f16", 2_048),
        ("v_add_f32_e32", 0),
    ],
)
def test_a_matrix_instruction_of_several_blocks_does_the_work_of_all(name: str, flops: float) -> None:
    assert matrix_flops(name) == flops
