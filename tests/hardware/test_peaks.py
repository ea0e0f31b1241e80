"""Bounds count every unit of a machine; what was measured on this one stays below them."""

import contextlib
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.evaluation.timing import measured_peaks
from kernel_scientist.hardware import cpu, cpu_models, measured
from kernel_scientist.hardware.gpus import GPUS
from kernel_scientist.hardware.peaks import (
    Machine,
    floor_us,
    native_operations,
    operations_per_clock,
    roofline_us,
    this_cpu,
)
from kernel_scientist.records.kernel import Work

AVX512 = frozenset({"avx", "avx2", "fma", "avx512f", "avx512bw"})
TYPES = ("fp64", "fp32", "bf16", "fp16", "fp8", "int8")


def test_matrix_units_count() -> None:
    plain = operations_per_clock(AVX512, 64)
    tiles = operations_per_clock(AVX512 | {"amx_tile", "amx_bf16", "amx_int8"}, 64)
    assert (plain["fp32"], plain["bf16"]) == (64, 128) and plain["int8"] == 256
    assert (tiles["bf16"], tiles["fp8"], tiles["int8"]) == (1024, 1024, 2048)
    assert operations_per_clock(AVX512 | {"amx_fp16"}, 64)["fp16"] == 1024
    arm = operations_per_clock(frozenset({"asimd", "sve", "bf16", "i8mm"}), 16, sve=32)
    assert arm["fp32"] >= 2 * 2 * 8 and arm["bf16"] == 4 * arm["fp32"] and arm["int8"] == 8 * arm["fp32"]
    assert operations_per_clock(frozenset({"asimd", "sme"}), 16, sme=64)["fp32"] == 2 * 16 * 16


@given(st.sets(st.sampled_from(["avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_bf16", "amx_int8", "amx_fp16"])))
def test_a_further_unit_never_lowers_a_rate(more: set[str]) -> None:
    less = operations_per_clock(AVX512, 64)
    assert all(rate >= less[name] for name, rate in operations_per_clock(AVX512 | more, 64).items())


@given(st.floats(1, 1e12), st.floats(1, 1e12), st.sampled_from(TYPES), st.sampled_from([*GPUS.values(), this_cpu()]))
def test_no_type_has_a_floor_above_its_roofline(flops: float, moved: float, dtype: str, machine: Machine) -> None:
    work = Work(flops=flops, bytes=moved, dtype=dtype)
    floor = floor_us(work, machine)
    assert floor <= roofline_us(work, machine) * (1 + 1e-9)
    assert floor == max(floor_us(Work(flops=flops, bytes=moved, dtype=one), machine) for one in TYPES)


def test_a_gpus_floor_is_at_its_highest_clock() -> None:
    assert GPUS["h100"].most_gflops == pytest.approx(1_978_900 * 1.98 / 1.83)
    assert GPUS["mi300x"].most_gflops == 2_614_900


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"vendor_id": "GenuineIntel", "cpu family": "6", "model": "207", "stepping": "2"}, "Emerald Rapids"),
        ({"vendor_id": "GenuineIntel", "cpu family": "6", "model": "85", "stepping": "7"}, "Cascade Lake"),
        ({"vendor_id": "AuthenticAMD", "cpu family": "25", "model": "17", "stepping": "1"}, "Zen 4"),
        ({"vendor_id": "AuthenticAMD", "cpu family": "26", "model": "2", "stepping": "1"}, "Zen 5"),
        ({"CPU implementer": "0x41", "CPU part": "0xd4f"}, "Neoverse V2 (Graviton 4, Grace)"),
        ({"vendor_id": "GenuineIntel", "cpu family": "6", "model": "999", "stepping": "1"}, ""),
        ({"vendor_id": "another"}, ""),
        ({}, ""),
    ],
)
def test_generations_are_told_by_their_numbers(fields: dict[str, str], name: str) -> None:
    assert cpu_models.generation(fields) == name


def test_features_that_decide_a_design_are_named() -> None:
    x86 = {"avx512vbmi", "avx512_fp16", "amx_int8", "gfni", "avx512_vpopcntdq", "fma"}
    assert cpu.instruction_sets(frozenset(x86 | {"smep", "sme", "fxsr"})) == sorted(x86)
    arm = {"asimd", "sve2", "i8mm", "bf16", "sme", "fphp"}
    assert cpu.instruction_sets(frozenset(arm | {"aes", "crc32"})) == sorted(arm)


def test_hyperthreads_of_one_core_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= cpu.physical_cores() <= cpu.cores()
    monkeypatch.setattr(cpu, "_TOPOLOGY", str(tmp_path / "{}"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 4, 5})
    for number, siblings in enumerate(("0,4", "1,5", "2,6", "3,7", "0,4")):
        (tmp_path / str(number)).write_text(f"{siblings}\n")
    (tmp_path / "5").write_text("1,5\n")
    assert (cpu.physical_cores(), cpu.cores()) == (2, 4)
    assert cpu.shared_caches() <= cpu.caches().keys()


def test_a_type_has_a_rate_of_its_own_only_by_instructions_of_its_own() -> None:
    assert native_operations(AVX512, 64) == {"fp64": 32, "fp32": 64}
    tiles = native_operations(AVX512 | {"avx512_fp16", "avx512_bf16", "amx_bf16", "avx512_vnni", "amx_int8"}, 64)
    assert tiles == {"fp64": 32, "fp32": 64, "bf16": 1024, "fp16": 128, "int8": 2048}
    assert native_operations(frozenset({"avx2", "avx_vnni"}), 32) == {"fp64": 16, "fp32": 32, "int8": 128}


def test_measured_peaks_are_below_the_bounds_and_kept_for_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_CACHE", str(tmp_path))
    assert measured.kept() is None and "not measured" in measured.described(None)[0]
    found = measured_peaks.measure(contextlib.nullcontext)
    assert found is not None and found == measured.kept(cpu.model(), cpu.cores()) and not measured.is_due()
    bounds = this_cpu()
    assert found.gflops["fp32"] > 0 and found.gflops.keys() == found.units.keys()
    assert all(rate <= bounds.peak_gflops[name] for name, rate in found.gflops.items())
    assert 0 < found.memory_gbps <= bounds.bound_gbps and 0 < found.cache_gbps <= bounds.bound_gbps
    assert f"load {found.load}" in measured.described(found)[0]
    assert measured.kept("another processor") is None
    yesterday = time.time() - measured.VALID_S - 60
    os.utime(measured.file(), (yesterday, yesterday))
    assert measured.is_due() and measured.kept() == found
