"""What perf prints is read, any text is, and addresses in a build become lines of the kernel's file."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.compilers import gxx
from kernel_scientist.compilers.request import BuildRequest
from kernel_scientist.profile import lines, perf, workspace
from kernel_scientist.profile.perf import MappedPart, PerfSample
from kernel_scientist.records import sampled
from kernel_scientist.records.sampled import Elsewhere, Sampled, SampledLine

PRINTED = """\
 7515 PERF_RECORD_MMAP2 7515/7515: [0x7fca53eba000(0x1000) @ 0x1000 fe:00 2156813 895089337]: r-xp /tmp/a b/k.so
    3 PERF_RECORD_MMAP2 3/3: [0x7fc5eee07000(0x2000) @ 0 00:00 0 0]: r-xp [vdso]
WARNING: Kernel address maps (/proc/{kallsyms,modules}) are restricted.
 7540 cpu-clock:u:      7fca53eba1e6 (/tmp/a b/k.so)
10308 cpu-clock:  ffffffff81d7f7d7 ([kernel.kallsyms])
 7515 cpu-clock:u:      7fca53a1de62 (/opt/lib/libgomp.so.1 (deleted))
 7515 cpu-clock:u:  12
"""
"""As perf 6.1 prints it."""
VIRTUAL = """\
# started on Mon Nov 30 05:42:01 2026

<not supported>,,cycles:u,0,100.00,,
<not supported>,,instructions:u,0,100.00,,
<not counted>,,cache-misses:u,0,0.00,,
"""
"""The table of a machine without counters."""
COUNTED = """\
2000000,,cycles:u,1000,100.00,,
4000000,,instructions:u,1000,100.00,2.00,insn per cycle
8000,,cache-misses:u,1000,50.00,,
<not counted>,,branch-misses:u,0,0.00,,
"""
SOURCE = """\
#include <cmath>

static inline float root(float x) {
    return std::sqrt(x) * x;
}

extern "C" void run(float *x, long n) {
    for (long i = 0; i < n; ++i)
        x[i] = root(x[i]);
}
"""


def test_samples_and_mappings_are_read() -> None:
    found = perf.read(PRINTED)
    assert found.mappings == [
        MappedPart(0x7FCA53EBA000, 0x1000, 0x1000, "/tmp/a b/k.so"),
        MappedPart(0x7FC5EEE07000, 0x2000, 0, "[vdso]"),
    ]
    assert found.samples == [
        PerfSample(7540, 0x7FCA53EBA1E6, "/tmp/a b/k.so"),
        PerfSample(10308, 0xFFFFFFFF81D7F7D7, "[kernel.kallsyms]"),
        PerfSample(7515, 0x7FCA53A1DE62, "/opt/lib/libgomp.so.1 (deleted)"),
        PerfSample(7515, 0x12, ""),
    ]
    assert found.of_system and not perf.read(PRINTED.replace("clock:  ", "clock:u:  ")).of_system


def test_what_was_not_counted_is_no_figure() -> None:
    assert perf.counts(VIRTUAL) == {} and perf.figures({}) == {}
    assert perf.counts(COUNTED) == {"cycles": 2_000_000, "instructions": 4_000_000, "cache-misses": 8000}
    assert perf.figures(perf.counts(COUNTED)) == {"instructions_per_cycle": 2.0, "cache_misses": 2.0}
    assert perf.figures({"instructions": 5, "cycles": 0}) == {}


@given(st.text() | st.lists(st.sampled_from([*PRINTED, *VIRTUAL, *PRINTED.split()])).map(" ".join))
def test_no_text_breaks_a_reader(text: str) -> None:
    for one in perf.read(text).samples:
        assert one.thread >= 0 and one.address < 1 << 64
    assert all(value >= 0 for value in perf.figures(perf.counts(text)).values())


@given(st.lists(st.sampled_from(["a = 1;", "}", "", "  x();", "y\t"])), st.lists(st.sampled_from(["}", "def f(): 0"])))
def test_each_line_that_is_placed_is_that_line(compiled: list[str], before: list[str]) -> None:
    text = "\n".join(compiled)
    for file in ("\n".join([*before, f'S = """{text}"""', "end"]), repr(text), "\n".join(reversed(compiled))):
        rows = file.split("\n")
        for number, place in lines.in_file(file, text).items():
            assert compiled[number - 1].strip() in rows[place - 1]


def test_lines_are_found_where_a_text_is_put_together() -> None:
    file = 'HEAD = "int a;"\nSOURCE = HEAD + """\nint b;\n}\n}\n"""\n'
    assert lines.in_file(file, "int a;\nint b;\n}\n}\n") == {2: 3}
    assert lines.in_file(file, "") == {}


def test_lines_cost_no_other_code_and_lead_to_the_source(tmp_path: Path) -> None:
    if not (shutil.which("objdump") and shutil.which("addr2line")):
        pytest.skip("binutils is not installed")
    request = BuildRequest(SOURCE, {}, ["-s"])
    traced = workspace.with_lines(request)
    assert isinstance(traced, BuildRequest)
    codes = list[list[str]]()
    paths = list[Path]()
    for one in (request, traced):
        path = gxx.build(one).path
        assert path is not None
        shown = subprocess.run(["objdump", "-d", "-j", ".text", path], capture_output=True, text=True, check=True)
        codes.append([row.partition("\t")[2].partition("<")[0] for row in shown.stdout.splitlines() if "\t" in row])
        paths.append(path)
    assert codes[0] == codes[1], "the profiled build has the same instructions"
    roots = [int(row.split(":")[0], 16) for row in shown.stdout.splitlines() if "sqrt" in row and "\t" in row]
    found = lines.of_addresses(paths[1], roots, tmp_path)
    assert roots and set(found.values()) == {4}, "the helper of a header counts as the line that calls it"
    assert lines.of_addresses(paths[0], roots, tmp_path) == {} == lines.of_addresses(paths[1], [1 << 40], tmp_path)


def test_a_profile_as_text() -> None:
    one = Sampled(
        case="large",
        samples=50,
        threads=(0.75, 0.25),
        own=0.9,
        lines=(SampledLine(line=12, text="x += y;", share=0.3), SampledLine(line=0, text="z();", share=0.6)),
        elsewhere=(Elsewhere(where="torch", share=0.1),),
        figures={"cache_misses": 2.0},
        remarks=("no more",),
    )
    head, *rows = sampled.table(one)
    assert "50 samples of CPU time, 2 threads (75%, 25% of it, waiting awake included); few" in head
    assert rows[:2] == [sampled.EVIDENCE, "in the kernel's own code: 90%"]
    assert rows[2:5] == [" 60%  line ?: z();", " 30%  line 12: x += y;", " 10%  outside: torch"]
    assert rows[5:] == ["last-level cache misses per 1000 instructions: 2", "no more"]
