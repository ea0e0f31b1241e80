"""What a CPU kernel's object code tells: classes of instructions, spills, and the loop that works most."""

import platform
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.compilers import disassembly, gxx
from kernel_scientist.compilers.request import BuildRequest

TILES = """
0000000000001100 <gemm>:
    1100:\tvpxor  %xmm0,%xmm0,%xmm0
    1104:\tvmovups %zmm1,0x40(%rsp)
    1108:\ttileloadd (%rax,%rdx,1),%tmm4
    110d:\ttdpbf16ps %tmm6,%tmm4,%tmm0
    1112:\tsub    $0x1,%eax
    1115:\tjne    1108 <gemm+0x8>
    1117:\tvaddps (%rdi),%zmm1,%zmm1
    111d:\tadd    $0x40,%rdi
    1121:\tcmp    %rsi,%rdi
    1124:\tjne    1117 <gemm+0x17>
    1126:\tjmp    1100 <gemm>
"""


def test_tiles_spills_and_the_hot_loop_are_recognised() -> None:
    found = disassembly.told(TILES)
    assert found.instructions["all"] == 11 and found.instructions["branch"] == 3
    assert found.instructions["tile product"] == 1 and found.instructions["tile load or store"] == 1
    assert found.instructions["vector spill"] == 1
    assert found.hot_loop.splitlines() == [
        "tileloadd (%rax,%rdx,1),%tmm4",
        "tdpbf16ps %tmm6,%tmm4,%tmm0",
        "sub $0x1,%eax",
        "jne <gemm+0x8>",
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("vdpbf16ps %zmm1,%zmm2,%zmm3", "dot"),
        ("vpdpbusd %ymm1,%ymm2,%ymm3", "dot"),
        ("bfmmla v0.4s, v1.8h, v2.8h", "dot"),
        ("sdot v0.4s, v1.16b, v2.4b[0]", "dot"),
        ("tdpbssd %tmm1,%tmm2,%tmm3", "tile product"),
        ("tilestored %tmm1,(%rax,%rbx,1)", "tile load or store"),
        ("vcvtneps2bf16 %zmm1,%ymm1", "convert"),
        ("vpermi2b %zmm1,%zmm2,%zmm3", "permute"),
        ("vfmadd231ps %zmm1,%zmm2,%zmm3", "fma"),
        ("fmla v0.4s, v1.4s, v2.4s", "fma"),
        ("vmovaps 0x80(%rsp),%zmm3", "vector spill"),
        ("str q0, [sp, #16]", "vector spill"),
    ],
)
def test_an_instruction_has_its_class(text: str, kind: str) -> None:
    assert kind in disassembly.classes(text)


def test_a_frame_pointer_is_the_stack_only_where_it_is_one() -> None:
    assert "vector spill" in disassembly.classes("vmovaps %zmm3,-0x40(%rbp)", framed=True)
    assert "vector spill" not in disassembly.classes("vmovaps %zmm3,-0x40(%rbp)")


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    found = disassembly.told(text)
    assert found.instructions.get("all", 0) <= text.count("\n") + 1


def test_a_long_loop_loses_its_middle() -> None:
    body = "\n".join(f"    {0x1000 + n:x}:\tvaddps %zmm1,%zmm2,%zmm3" for n in range(100))
    found = disassembly.told(f"0000 <f>:\n{body}\n    1064:\tjne    1000 <f>\n").hot_loop.splitlines()
    assert len(found) == disassembly.MOST_LINES and found[20] == "... (62 more)" and found[-1] == "jne <f>"


@pytest.mark.skipif(shutil.which("objdump") is None, reason="there is no objdump")
def test_a_real_object_has_a_hot_loop() -> None:
    source = """extern "C" float dot(const float* a, const float* b, long n) {
        float sum = 0;
        for (long i = 0; i < n; ++i) sum += a[i] * b[i];
        return sum;
    }"""
    report = gxx.build(BuildRequest(source, {}, ["-ffast-math"])).report
    assert report.instructions["all"] > 10
    assert platform.machine() != "x86_64" or "vfmadd" in report.hot_loop


JUMPS_BACK_FROM_BEHIND = """0000 <f>:
    1000:\tvaddps %zmm1,%zmm2,%zmm2
    1004:\tjne    1000 <f>
    1008:\tvfmadd231ss %xmm1,%xmm1,%xmm0
    100c:\tvfmadd231ss %xmm1,%xmm1,%xmm0
    1010:\tret
    1014:\txor    %eax,%eax
    1018:\tjmp    1008 <f+0x8>
"""


def test_a_jump_back_from_behind_the_end_closes_no_loop() -> None:
    assert disassembly.told(JUMPS_BACK_FROM_BEHIND).hot_loop.splitlines() == ["vaddps %zmm1,%zmm2,%zmm2", "jne <f>"]


def test_a_class_s_name_is_a_name_of_an_mlflow_metric() -> None:
    """A campaign records the counts as metrics; MLflow refuses other names, which ended a campaign."""
    from mlflow.utils.validation import _validate_metric_name

    for name in disassembly.NAMES:
        _validate_metric_name(f"instructions/{name}")
        assert "/" not in name
