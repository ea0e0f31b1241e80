"""Lines of a submission that an instruction belongs to, through functions that were inlined."""

from pathlib import Path

import pytest

from kernel_scientist.gpu.capture import code_findings
from kernel_scientist.gpu.isa.assembly import put, read
from kernel_scientist.gpu.machine import listing, waits
from kernel_scientist.gpu.machine.line_table import LineTable
from kernel_scientist.gpu.machine.listing import Listing
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.gpu.toolchains.quoted_sources import Sources
from kernel_scientist.gpu.toolchains.sources import joined

TOOLS = hip.find()
pytestmark = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
TEXT = """#include <hip/hip_runtime.h>
__device__ float widened(unsigned short x) { return __uint_as_float((unsigned int)x << 16); }
__device__ float exchanged(float x) { return __shfl_xor(x, 1); }
__device__ float body(const unsigned short* x, const float* y, int i) {
    float first = widened(x[i]);
    float second = expf(first) * 3;
    float third = rsqrtf(second) + y[i];
    float fourth = exchanged(third);
    return fourth * first + second;
}
__global__ void kernel(const unsigned short* x, const float* y, float* z) {
    int i = threadIdx.x;
    z[i] = body(x, y, i) + widened(x[i + 64]);
}
"""
FILE = f'import torch\n\nDEVICE = r"""{TEXT}"""\n'
BEFORE = 2
"""Lines of the file before the text's first one."""


@pytest.fixture(scope="module")
def text() -> str:
    built = hip.compile_hip(joined([TEXT], "ext"), "gfx942", [])
    assert built.ok, built.log
    return built.assembly


@pytest.fixture(scope="module")
def listed(text: str) -> Listing:
    return listing.read(text)


def lines(text: str, listed: Listing, beginning: str, whole: bool) -> set[tuple[int, ...]]:
    """Return the chains of lines of the instructions whose names begin so. `whole`: those of small functions too."""
    places = LineTable(text, listed)
    of = places.chain if whole else places.condensed
    numbers = [n for n, one in enumerate(listed.statements) if one.mnemonic.startswith(beginning)]
    return {tuple(line for _, line in of(number)) for number in numbers}


def test_an_inlined_function_s_line_is_followed_by_those_that_call_it(text: str, listed: Listing) -> None:
    assert lines(text, listed, "global_load_ushort", whole=True) == {(2, 5, 13), (2, 13)}
    assert lines(text, listed, "global_load_dword", whole=True) == {(7, 13)}
    assert lines(text, listed, "global_store", whole=True) == {(13,)}


def test_a_header_s_function_belongs_to_the_line_that_calls_it(text: str, listed: Listing) -> None:
    assert lines(text, listed, "ds_bpermute", whole=True) == {(3, 8, 13)}
    assert lines(text, listed, "v_rsq", whole=True) == {(7, 13)}


def test_a_small_function_is_a_part_of_the_line_that_calls_it(text: str, listed: Listing) -> None:
    assert lines(text, listed, "global_load_ushort", whole=False) == {(5, 13), (13,)}
    assert lines(text, listed, "ds_bpermute", whole=False) == {(8, 13)}
    assert lines(text, listed, "v_rsq", whole=False) == {(7, 13)}, "a function of many lines keeps its own"


def test_lines_of_an_extension_are_those_of_the_submission_s_file(text: str, listed: Listing) -> None:
    sources, places = Sources(), LineTable(text, listed)
    sources.add("ext[0]", TEXT, FILE)
    (number,) = (n for n, one in enumerate(listed.statements) if one.mnemonic == "ds_bpermute_b32")
    line, quoted, called = sources.told(places.chain(number))
    assert FILE.splitlines()[line - 1].strip() == quoted and quoted.startswith("__device__ float exchanged(")
    assert called.startswith(f", called in line {8 + BEFORE} (float fourth = exchanged(third);), called in line ")
    assert sources.told(()) == (0, "", "")


def test_a_wait_is_for_the_loads_that_it_may_wait_for(listed: Listing) -> None:
    waited = waits.awaited(listed)
    loads = {n for n, one in enumerate(listed.statements) if one.mnemonic.startswith("global_load")}
    assert loads and {load for of in waited.values() for load in of} == loads
    for wait, of in waited.items():
        assert listed.statements[wait].mnemonic == "s_waitcnt" and all(load < wait for load in of)


def test_a_finding_in_an_inlined_function_names_its_callers() -> None:
    load = 'unsigned v;\n asm volatile("global_load_ushort %0, %1, off" : "=v"(v) : "v"(x));\n return v + 1;'
    kernel = "__global__ void kernel(const unsigned* x, unsigned* z) {\n z[threadIdx.x] = loaded(x + threadIdx.x);\n}"
    source = f"#include <hip/hip_runtime.h>\n__device__ unsigned loaded(const unsigned* x) {{\n {load}\n}}\n{kernel}\n"
    built = hip.compile_hip(joined([source], "ext"), "gfx942", [])
    assert built.ok, built.log
    put(built.assembly)
    said, *more = code_findings.omissions(read(built.assembly))
    assert said.startswith("ext[0]:5, ") and said.endswith(" is missing, called in ext[0]:8"), said
    assert code_findings.omissions(read(built.assembly), {"kernel"}) == (said, *more)
    assert code_findings.omissions(read(built.assembly), {"another"}) == ()


KERNEL = """import triton
@triton.jit
def kernel(flag, other):
    if other:
        # wait for the others
        tl.atomic_add(flag, 1)
        while tl.atomic_add(flag, 0) < 2:
            x = 1
            if x:
                y = 2
    z = 3
def next_one(flag):
    while True:
        pass
"""


@pytest.mark.parametrize(
    ("line", "has_line", "told"),
    [
        (7, True, 7),
        (8, True, 8),
        (10, True, 10),
        (6, True, 7),
        (4, True, 7),
        (5, False, 7),
        (11, True, 7),
        (10, False, 7),
    ],
)
def test_a_wave_that_never_leaves_a_loop_is_told_in_a_line_of_the_loop(
    tmp_path: Path, line: int, has_line: bool, told: int
) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    number, text = Sources().loop([(str(file), line)], has_line)
    assert (number, text) == (told, KERNEL.splitlines()[told - 1].strip())


def test_the_line_of_a_function_that_is_called_in_a_loop_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("def loaded(p):\n    return tl.load(p)\ndef kernel(p):\n    while loaded(p) == 0:\n        pass\n")
    assert Sources().loop([(str(file), 2), (str(file), 4)], True)[0] == 2
    assert Sources().loop([], True) == (0, "")
