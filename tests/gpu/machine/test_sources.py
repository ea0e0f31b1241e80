"""Lines of a submission that an instruction belongs to, through functions that were inlined."""

from kernel_scientist.gpu.machine import listing
from kernel_scientist.gpu.machine.sources import Sources

END = """
    .amdgpu_metadata
---
amdhsa.kernels: []
amdhsa.target: amdgcn-amd-amdhsa--gfx942
...
    .end_amdgpu_metadata
"""
TEXT = """
    .file 1 "/place" "kernel.py"
    .file 2 "/library" "standard.py"
    .text
    .loc 1 4 8 ; kernel.py:4:8 @[ kernel.py:9:15 ]
    s_nop 0
    .loc 2 263 15 ; standard.py:263:15 @[ standard.py:293:36 @[ kernel.py:4:42 @[ kernel.py:9:25 ] ] ]
    s_nop 1
    .loc 1 7 1 ; kernel.py:7:1
    s_nop 2
"""
HIP = """
    .file 1 "ext[0]"
    .text
    .loc 1 2 8 ; ext[0]:2:8 @[ ext[0]:3:15 ]
    s_nop 0
"""


def test_callers_of_an_inlined_function_are_known() -> None:
    own, library, plain = listing.read(TEXT + END).statements
    assert own.callers == (("kernel.py", 9),) and plain.callers == ()
    assert library.callers == (("standard.py", 293), ("kernel.py", 4), ("kernel.py", 9))
    sources = Sources()
    assert [sources.of(one)[0] for one in (own, library, plain)] == [4, 4, 7]
    assert sources.callers(own, 4).startswith(", called in line 9 (")
    assert sources.callers(library, 4) == sources.callers(own, 4)
    assert sources.callers(plain, 7) == ""


def test_lines_of_an_extension_are_those_of_the_submission_s_file() -> None:
    text = "\nfloat widened(short x);\ny[i] = widened(x[j]);\n"
    sources = Sources()
    sources.add("ext[0]", text, f'import torch\nDEVICE = """{text}"""')
    (one,) = listing.read(HIP + END).statements
    assert sources.of(one) == (3, "float widened(short x);")
    assert sources.callers(one, 3) == ", called in line 4 (y[i] = widened(x[j]);)"
