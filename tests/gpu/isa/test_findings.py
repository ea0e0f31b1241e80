"""What code objects and sources give to think about, and what they do not."""

import pytest

from kernel_scientist.gpu.capture.code_findings import findings, suspicions
from kernel_scientist.records.evaluation import CodeObject
from tests.conftest import ROOT

PLAIN = CodeObject(
    kernel="k",
    arch="gfx942",
    digest="",
    num_warps=4,
    vgpr=98,
    lds_bytes=16384,
    occupancy=4,
    limited_by="registers",
    mfma={"v_mfma_f32_32x32x16_fp8_fp8": 8},
    mix=({"valu": 9}, {"lds_read 64": 16, "lds_write 128": 8}),
)


def said(source: str = "", arch: str = "gfx942", **changes: object) -> str:
    return "\n".join(findings([PLAIN.model_copy(update={"arch": arch, **changes})], arch, source))


def test_a_sound_kernel_gives_nothing_to_say() -> None:
    assert findings([PLAIN], "gfx942", "tl.dot(a, b)") == ()


def test_lds_over_the_limit_names_both_numbers() -> None:
    assert "81920 bytes of LDS, gfx942 has 65536" in said(lds_bytes=81920)
    assert "LDS" not in said(arch="gfx950", lds_bytes=81920)
    assert "163841 bytes of LDS, gfx950 has 163840" in said(arch="gfx950", lds_bytes=163841)


def test_a_workgroup_of_too_many_threads_is_refused_where_a_wave_has_64_lanes() -> None:
    assert "32 x 64 = 2048 threads, gfx942 allows 1024: the launch is refused" in said(num_warps=32)
    assert "threads" not in said(num_warps=16) and "threads" not in said(arch="sm_90", num_warps=32)


def test_registers_that_do_not_stay_registers() -> None:
    assert "12 registers spilled" in said(spills=12, scratch_bytes=48)
    assert "48 bytes of scratch memory per lane" in said(scratch_bytes=48)
    assert "400 bytes stored to local memory" in said(arch="sm_90", spills=400)


def test_low_occupancy_and_what_limits_it() -> None:
    text = said(occupancy=2, limited_by="lds", lds_bytes=32768)
    assert "2 of 8 waves per SIMD" in text and "limited by LDS" in text and "32768 bytes of LDS" in text
    assert "4 of 16 waves" in said(arch="sm_90", occupancy=4, limited_by="registers")


def test_narrow_accesses_count_in_loops_only() -> None:
    assert "64 lds_write instructions of 16 bits" in said(mix=({}, {"lds_write 16": 40}, {"lds_write 16": 24}))
    assert "32 vmem_load instructions of 8 bits" in said(mix=({}, {"vmem_load 8": 32}))
    assert said(mix=({"lds_write 16": 64}, {"vmem_load 32": 64, "vmem_load 0": 9, "v_mfma": 8})) == ""


@pytest.mark.parametrize("source", ["x = tl.dot(a, b)", "__builtin_amdgcn_mfma_f32_16x16x4f32(a, b, c, 0, 0, 0)"])
def test_multiplying_without_matrix_instructions(source: str) -> None:
    assert "no matrix instruction" in said(source, mfma={})
    assert "no matrix instruction" not in said(source) and said("x = a * b", mfma={}) == ""


@pytest.mark.parametrize(
    ("arch", "operands", "mfma", "told"),
    [
        ("gfx942", ("fp8e4nv",), "v_mfma_f32_32x32x8_f16", "float8_e4m3fn is done with v_mfma_f32_32x32x8_f16"),
        ("gfx942", ("fp8e4b8",), "v_mfma_f32_32x32x16_fp8_fp8", ""),
        ("gfx950", ("fp8e5b16",), "v_mfma_f32_32x32x16_f16", "OCP (float8_e4m3fn) only"),
        ("gfx950", ("fp8e4nv",), "v_mfma_f32_32x32x64_f8f6f4", ""),
        ("gfx942", ("mx e2m1", "bf16"), "v_mfma_f32_32x32x8_bf16", "mxfp4 e2m1"),
        ("gfx942", ("int8",), "v_mfma_i32_32x32x16_i8", ""),
        ("gfx942", ("int8",), "v_mfma_f32_32x32x8_bf16", "int8"),
        ("gfx942", ("fp16",), "v_mfma_f32_32x32x8_bf16", "float16"),
        ("gfx942", ("fp32",), "v_mfma_f32_32x32x8_bf16", ""),  # asked for, by `input_precision`
        ("sm_90", ("fp8e4nv",), "QGMMA.64x128x32.F32.E4M3.E4M3", ""),
        ("sm_90", ("fp8e5",), "HMMA.16816.F32", "float8_e5m2 is done with HMMA"),
        ("gfx942", (), "v_mfma_f32_32x32x8_bf16", ""),
        ("gfx942", ("fp8e4nv",), "", ""),
    ],
)
def test_a_product_in_another_type_than_its_operands(
    arch: str, operands: tuple[str, ...], mfma: str, told: str
) -> None:
    found = said(arch=arch, operands=operands, mfma={mfma: 1} if mfma else {})
    assert ("in another type" in found) == bool(told) and told in found, found


def test_a_finding_names_the_configuration_of_its_code() -> None:
    def one(block: int, spills: int, **more: object) -> CodeObject:
        constants = {"BLOCK": str(block), "KIND": "x", "num_warps": "4"}
        return PLAIN.model_copy(update={"constants": constants, "spills": spills, **more})

    assert findings([one(64, 0), one(128, 7)], "gfx942", "") == (
        "k (BLOCK 128): 7 registers spilled to scratch memory (0 bytes per lane)",
    ), "by what differs"
    tuned = findings([one(64, 7, tuned=("BLOCK", "num_warps"))], "gfx942", "")
    assert tuned[0].startswith("k (BLOCK 64, num_warps 4): "), "and by what the autotuner chose"
    assert findings([one(64, 7)], "gfx942", "")[0].startswith("k: ")


def test_each_sentence_once() -> None:
    assert len(findings([PLAIN.model_copy(update={"spills": 3})] * 5, "gfx942", "")) == 1


@pytest.mark.parametrize(
    ("source", "arch", "expected"),
    [
        ("a.to(torch.float8_e4m3fn)", "gfx942", "float8_e4m3fn"),
        ("x.to(tl.float8e4nv)", "gfx942", "float8e4nv"),
        ("__hip_fp8_e4m3 x;", "gfx942", "__hip_fp8_e4m3:"),
        ("a.to(torch.float8_e4m3fnuz)", "gfx950", "float8_e4m3fnuz"),
        ("__hip_fp8x2_e5m2_fnuz x;", "gfx950", "__hip_fp8x2_e5m2_fnuz"),
        ("__shfl_xor_sync(0xffffffff, x, 1)", "gfx942", "__shfl_xor_sync"),
        ("#define FULL_MASK 0xffffffff\n__shfl_sync(FULL_MASK, x, 0)", "gfx942", "__shfl_sync with a mask of 32"),
        ("constexpr unsigned ALL = ~0u;\n__any_sync(ALL, x)", "gfx942", "__any_sync with a mask of 32"),
        ("__reduce_add_sync(0xffffffffu, x)", "gfx950", "__reduce_add_sync with a mask of 32"),
        ("__ballot_sync(0xFFFFFFFF, p)", "gfx942", "64"),
        ("__global__ __launch_bounds__(64) void k() {}\n#define WARP_SIZE 32", "gfx942", "WARP_SIZE 32"),
        ("__global__ __launch_bounds__(64) void k() { int l = threadIdx.x % 32; }", "gfx942", "threadIdx.x % 32"),
        ("__builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(", "gfx942", "16x16x128_f8f6f4: gfx942 has no such"),
        ('asm("v_mfma_f32_32x32x16_bf16 %0")', "gfx942", "32x32x16_bf16"),
        ("__builtin_amdgcn_mfma_f32_16x16x8_xf32(", "gfx950", "xf32: gfx950 has no such"),
        ("__builtin_amdgcn_mfma_i32_32x32x8i8(", "gfx942", "32x32x8i8"),
        ("__global__ void k() {}", "gfx942", "__launch_bounds__"),
        ("__global__ __launch_bounds__(64) void k() { extern __shared__ float s[]; }", "gfx942", "allocated at the"),
    ],
)
def test_what_does_not_suit_the_gpu(source: str, arch: str, expected: str) -> None:
    (line,) = suspicions(source, arch)
    assert expected in line


@pytest.mark.parametrize(
    "source",
    [
        '"""float8_e4m3fn is what others use."""\nimport torch',
        "x = 1  # not torch.float8_e4m3fn",
        "// __shfl_xor_sync(0xffffffff, x, 1)",
        "a.to(torch.float8_e4m3fnuz)",
        "__shfl_xor_sync(0xffffffffffffffffull, x, 1)",
        "#define FULL_MASK 0xffffffffffffffffull\n__shfl_xor_sync(FULL_MASK, x, 1)",
        "__hip_fp8_e4m3_fnuz x;",
        "__builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(a, b, c, 0, 0, 0)",
        "__builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a, b, c, 0, 0, 0)",
        "__builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, 0, 0, 0)",
        "BLOCK = 32",
        "#include <hip/hip_runtime.h>\n__global__ __launch_bounds__(256) void k() {}",
    ],
)
def test_what_suits_gfx942(source: str) -> None:
    assert suspicions(source, "gfx942") == ()


def test_nothing_is_said_of_other_vendors() -> None:
    assert suspicions("a.to(torch.float8_e4m3fn); __shfl_xor_sync(0xffffffff, x, 1)", "sm_90") == ()


@pytest.mark.parametrize("text", ["", '"""' * 5000, "#" * 50_000, "/*" * 50_000, "\n#" * 50_000, "__shfl(" * 9000])
def test_any_text_is_read_in_no_time(text: str) -> None:
    assert suspicions(text, "gfx942") in ((), suspicions(text, "gfx950"))


def test_the_seeds_suit_gfx942() -> None:
    for path in (ROOT / "problems").glob("*/seeds/*.py"):
        assert suspicions(path.read_text(), "gfx942") == (), path
