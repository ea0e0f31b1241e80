"""Two sources that differ in nothing that matters are one kernel; any other two are two."""

import pytest

from kernel_scientist.compilers.fingerprint import fingerprint
from tests.conftest import ROOT

BASE = '''"""A kernel."""
from kernel_scientist import load

TUNABLES = {"A": 1}
SOURCE = r"""
#include <cstdint>
extern "C" void copy(const int* x, int* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = x[i];  // "copy"
}
"""
kernel = load(SOURCE, defines=TUNABLES)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
'''
SAME = [
    BASE.replace('"""A kernel."""', '"""Another text."""'),
    BASE.replace('  // "copy"', "").replace("    for", "\t/* a\n loop */ for"),
    BASE.replace("x, out = data", "x,   out = data  # the inputs"),
    BASE.replace("out[i] = x[i];", "out[ i ]=x[ i ] ;"),
    BASE.replace("    for", "    // @begin copy\n    for").replace('// "copy"\n', "\n    // @end copy\n"),
]
OTHER = [
    BASE.replace('"A": 1', '"A": 2'),
    BASE.replace("++i", "i += 2"),
    BASE.replace("#include <cstdint>", "#include <cstdint> \n#define X 1"),
    BASE.replace("const int* x", "const unsigned int* x"),
    BASE.replace("return out", "return x"),
]


@pytest.mark.parametrize("text", SAME)
def test_what_makes_no_difference(text: str) -> None:
    assert text != BASE and fingerprint(text) == fingerprint(BASE)


@pytest.mark.parametrize("text", OTHER)
def test_what_makes_one(text: str) -> None:
    assert text != BASE and fingerprint(text) != fingerprint(BASE)


def test_seeds_differ_and_odd_files_have_one_too() -> None:
    seeds = [f.read_text() for f in ROOT.glob("problems/*/seeds/*.py")]
    assert len({fingerprint(s) for s in seeds}) == len(seeds) > 6
    assert fingerprint("def (") != fingerprint("def )") and fingerprint("") and fingerprint("\x00")
