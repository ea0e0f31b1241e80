"""Kernels are named as their source names them, by as much as tells them apart."""

import pytest

from kernel_scientist.gpu.isa.symbols import plain

TILED = ["_Z5tiledILj128ELb1EL4Mode0EEvPKfPf", "_Z5tiledILj64ELb1EL4Mode0EEvPKfPf"]
SHAPED = "_Z4gemmIXtl4tileLi128ELi64EEEEvPf"


@pytest.mark.parametrize(
    ("symbols", "names"),
    [
        (["_Z4gemmPKhPf", "k"], ["gemm", "k"]),
        (["_Z1kIfEvPT_", "_Z1kIdEvPT_"], ["k<float>", "k<double>"]),
        (["_ZN12_GLOBAL__N_17look_upEPfPKl"], ["look_up"]),
        (["_ZN1a1bEv", "_ZN1aIiE1bIfEEvv"], ["a::b", "a<int>::b<float>"]),
        (TILED, ["tiled<128u, true, (Mode)0>", "tiled<64u, true, (Mode)0>"]),
        ([SHAPED, SHAPED.replace("64", "32")], ["gemm<tile{128, 64}>", "gemm<tile{128, 32}>"]),
        (["_Z1kPf", "_Z1kPd", "_Z4gemmPf"], ["k(float*)", "k(double*)", "gemm"]),
        (["_Z99x", "i", "_Z", ""], ["_Z99x", "i", "_Z", ""]),
        ([], []),
    ],
)
def test_a_name_is_as_long_as_it_must_be(symbols: list[str], names: list[str]) -> None:
    assert plain(symbols) == dict(zip(symbols, names, strict=True))
