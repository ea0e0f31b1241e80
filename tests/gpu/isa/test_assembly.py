"""Assembly of real compilers (Triton for gfx942, gfx950, sm_90), read; and what is not assembly, refused."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.gpu.isa import amdgcn, assembly
from kernel_scientist.gpu.isa.amdgcn import classify
from kernel_scientist.gpu.isa.assembly import AssemblyError
from kernel_scientist.gpu.isa.sass import classify as classify_sass
from kernel_scientist.gpu.isa.tally import Instruction, depths
from kernel_scientist.gpu.toolchains import disassembly
from kernel_scientist.hardware import occupancy
from kernel_scientist.records.evaluation import CodeObject
from tests.conftest import ROOT

triton = pytest.importorskip("triton")
FP8 = {"gfx942": "*fp8e4b8", "gfx950": "*fp8e4nv", "sm_90": "*fp8e4nv"}
GEMM = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 128, "GROUP_M": 8, "NATIVE_FP8": True}
RMSNORM = {"BLOCK_ROWS": 1, "BLOCK_COLS": 1024, "ONE_TILE": False}
ARCHES = ("gfx942", "gfx950", "sm_90")


@pytest.fixture(scope="module", autouse=True)
def _triton_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield


def seed(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("seed", ROOT / "problems" / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(kernel: Any, types: list[str], constants: dict[str, Any], arch: str, **options: int) -> tuple[str, int]:
    """Compile without a GPU; return the assembly and the bytes of shared memory."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else types[i] for i, name in enumerate(names)}
    aligned = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(types) if kind[0] == "*" or kind == "i32"}
    source = ASTSource(kernel, signature, constants, aligned)
    target = GPUTarget("cuda", 90, 32) if arch == "sm_90" else GPUTarget("hip", arch, 64)
    made = triton.compile(source, target=target, options=options)
    text = disassembly.of_cubin(made.asm["cubin"]) if arch == "sm_90" else made.asm["amdgcn"]
    return text, made.metadata.shared


def gemm(arch: str, num_warps: int = 4, **constants: int) -> tuple[str, int]:
    types = [FP8[arch], FP8[arch], "*fp32", "*fp32", "*bf16", "i32", "i32", "i32"]
    kernel = seed("fp8-blockwise-gemm/seeds/triton_tiled.py").gemm_kernel
    return compiled(kernel, types, GEMM | constants, arch, num_warps=num_warps)


def rmsnorm(arch: str) -> str:
    types = ["*bf16", "*fp32", "*bf16", "i32", "i32", "fp32"]
    return compiled(seed("rmsnorm/seeds/triton_tiled.py").rmsnorm_kernel, types, RMSNORM, arch)[0]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {arch: rmsnorm(arch) for arch in ARCHES}


def comment(text: str, name: str) -> int:
    found = re.search(rf"; {name}\s*[:=]\s*(\d+)", text)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize(
    ("arch", "instruction", "narrow"),
    [
        ("gfx942", "v_mfma_f32_32x32x16_fp8_fp8", "lds_write 16"),
        ("gfx950", "v_mfma_f32_32x32x64_f8f6f4", ""),
        ("sm_90", "QGMMA.64x64x32.F32.E4M3.E4M3", "lds_write 8"),
    ],
)
def test_a_tiled_fp8_gemm(arch: str, instruction: str, narrow: str) -> None:
    text, shared = gemm(arch)
    (found,) = assembly.read(text, 4, shared)
    assert (found.kernel, found.arch, found.num_warps, found.lds_bytes) == ("gemm_kernel", arch, 4, shared)
    assert found.mfma[instruction] >= 4 and found.mix[1][instruction] >= 2
    assert found.spills == found.scratch_bytes == 0 and found.code_bytes > 1000
    assert found.barriers >= 2 and found.waits >= 4
    assert found.occupancy == occupancy.occupancy(arch, *found.needs).waves
    assert not narrow or found.mix[1][narrow] >= 32
    counted = {kind: sum(level.get(kind, 0) for level in found.mix) for kind in ("barrier", "wait", instruction)}
    assert counted == {"barrier": found.barriers, "wait": found.waits, instruction: found.mfma[instruction]}


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("tile", [32, 128])
def test_it_agrees_with_the_compiler(arch: str, tile: int) -> None:
    text, _ = gemm(arch, num_warps=4, BLOCK_M=tile, BLOCK_N=tile, BLOCK_K=32)
    (found,) = assembly.read(text, 4)
    assert found.vgpr == comment(text, "NumVgprs") and found.agpr == comment(text, "NumAgprs")
    assert found.code_bytes == comment(text, "codeLenInByte")
    assert found.occupancy == comment(text, "Occupancy")
    assert found.mfma == {name: text.count(f"\t{name} ") for name in found.mfma}


def llvm_depths(text: str) -> list[int]:
    """Return the loop depth of each instruction of the first kernel by the comments at LLVM's blocks."""
    body = text[text.index("@") : text.index(".Lfunc_end0:")].splitlines()
    depth, found, heading = 0, list[int](), False
    for line in body:
        block = re.match(r"(\.LBB\d+_\d+:|; %bb\.\d+:)", line)
        if block or (heading and line.lstrip().startswith(";")):
            stated = [int(d) for d in re.findall(r"(?:Header|Header=\w+):? Depth=(\d+)", line)]
            depth = max([0 if block else depth, *stated])
            heading = True
            continue
        heading = False
        if re.match(r"\s+[a-z]\w*", line):
            found.append(depth)
    return found


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_loops_are_those_that_llvm_names(arch: str, texts: dict[str, str]) -> None:
    for text in (texts[arch], gemm(arch)[0], gemm(arch, BLOCK_K=32)[0]):
        told = llvm_depths(text)
        (found,) = assembly.read(text)
        assert [sum(level.values()) for level in found.mix] == [told.count(d) for d in range(max(told) + 1)]


def test_two_loops_in_sass(texts: dict[str, str]) -> None:
    (found,) = assembly.read(texts["sm_90"], 4)
    assert len(found.mix) == 2 and found.mix[1]["vmem_store 128"] == 1 and found.accesses["STG 128"] == 1


class Flow(NamedTuple):
    """The successors of an instruction: the jump's target, and whether the next one may follow."""

    target: int | None = None
    falls: bool = True


def depths_of(flow: list[Flow]) -> list[int]:
    steps = [Instruction("valu", jump=None if s.target is None else str(s.target), falls=s.falls) for s in flow]
    return depths(steps, {str(place): place for place in range(len(flow))})


@pytest.mark.parametrize(
    ("flow", "expected"),
    [
        ([], []),
        ([Flow()], [0]),
        ([Flow(0)], [1]),
        ([Flow(), Flow(0), Flow()], [1, 1, 0]),
        ([Flow(), Flow(), Flow(1), Flow(0), Flow()], [1, 2, 2, 1, 0]),
        ([Flow(), Flow(4), Flow(), Flow(falls=False), Flow(2, falls=False)], [0, 0, 0, 0, 0]),  # a cold block behind
        ([Flow(), Flow(0), Flow(0), Flow()], [1, 1, 1, 0]),  # a `continue` is no second loop
        ([Flow(2), Flow(), Flow(1), Flow()], [0, 1, 1, 0]),  # entered at two places
        ([Flow(falls=False), Flow(1)], [0, 0]),  # nothing reaches it
    ],
)
def test_depths(flow: list[Flow], expected: list[int]) -> None:
    assert depths_of(flow) == expected


@given(st.lists(st.tuples(st.none() | st.integers(0, 30), st.booleans()), max_size=31))
def test_any_flow_has_depths(steps: list[tuple[int | None, bool]]) -> None:
    flow = [Flow(t if t is not None and t < len(steps) else None, falls) for t, falls in steps]
    assert len(depths_of(flow)) == len(flow)


@pytest.mark.parametrize(
    ("line", "kind", "access"),
    [
        ("buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen", "vmem_load 128", "buffer_load 128"),
        ("buffer_load_dword v4, s[0:3], 0 offen lds", "vmem_load 32", "buffer_load_lds 32"),
        ("global_load_lds_dwordx4 v[0:1], off", "vmem_load 128", "global_load_lds 128"),
        ("global_load_ubyte v0, v[1:2], off", "vmem_load 8", "global_load 8"),
        ("global_load_short_d16_hi v0, v[1:2], off", "vmem_load 16", "global_load 16"),
        ("global_store_dwordx2 v[1:2], v[3:4], off", "vmem_store 64", "global_store 64"),
        ("global_store_byte v0, v1, s[0:1]", "vmem_store 8", "global_store 8"),
        ("scratch_store_dword off, v40, s32", "scratch_store 32", "scratch_store 32"),
        ("ds_write_b16 v0, v1", "lds_write 16", "ds_write 16"),
        ("ds_write_b16_d16_hi v0, v1", "lds_write 16", "ds_write 16"),
        ("ds_read2_b64 v[0:3], v4", "lds_read 128", "ds_read 128"),
        ("ds_read2st64_b32 v[0:1], v4", "lds_read 64", "ds_read 64"),
        ("ds_read_b64_tr_b8 v[0:1], v4", "lds_read 64", "ds_read 64"),
        ("ds_read_u8_d16 v0, v4", "lds_read 8", "ds_read 8"),
        ("ds_write_b96 v0, v[1:3]", "lds_write 96", "ds_write 96"),
        ("ds_bpermute_b32 v0, v1, v2", "lds_read 32", "ds_bpermute 32"),
        ("ds_add_rtn_f32 v0, v1, v2", "atomic", "ds_add_f32"),
        ("global_atomic_add_f32 v0, v1, s[0:1]", "atomic", "global_atomic_add_f32"),
        ("s_load_dwordx8 s[0:7], s[8:9], 0x0", "smem_load 256", "s_load 256"),
        ("v_mfma_f32_32x32x8_bf16_1k_e64 a[0:15], v[0:1], v[2:3], a[0:15]", "v_mfma_f32_32x32x8_bf16_1k", ""),
        ("v_smfmac_f32_16x16x32_bf16 v[0:3], v[4:5], v[6:9], v10", "v_smfmac_f32_16x16x32_bf16", ""),
        ("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]", "valu_packed", ""),
        ("v_exp_f32_e32 v0, v1", "trans", ""),
        ("v_add_u32_dpp v0, v1, v2 quad_perm:[1,0,3,2]", "valu", ""),
        ("s_waitcnt vmcnt(0)", "wait", ""),
        ("s_barrier", "barrier", ""),
        ("s_cbranch_scc1 .LBB0_3", "branch", ""),
        ("s_endpgm", "branch", ""),
        ("s_add_i32 s0, s1, s2", "salu", ""),
        ("frobnicate v0", "other", ""),
    ],
)
def test_amd_instructions(line: str, kind: str, access: str) -> None:
    name, _, operands = line.partition(" ")
    assert classify(name, operands)[:3] == (kind, "mfma" in kind or "smfmac" in kind, access)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("LDG.E.128", "vmem_load 128"),
        ("LDGSTS.E.BYPASS.LTC128B.128", "vmem_load 128"),
        ("STG.E.U8", "vmem_store 8"),
        ("LDSM.16.M88.4", "lds_read 128"),
        ("STS.U16", "lds_write 16"),
        ("LDS", "lds_read 32"),
        ("HGMMA.64x128x16.F32.BF16", "HGMMA.64x128x16.F32.BF16"),
        ("HMMA.16816.F32", "HMMA.16816.F32"),
        ("HFMA2.MMA", "valu_packed"),
        ("MUFU.RCP", "trans"),
        ("BAR.SYNC.DEFER_BLOCKING", "barrier"),
        ("WARPGROUP.DEPBAR.LE", "wait"),
        ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU", "atomic"),
        ("UIADD3", "salu"),
        ("FFMA", "valu"),
        ("EXIT", "branch"),
    ],
)
def test_nvidia_instructions(name: str, kind: str) -> None:
    assert classify_sass(name, "", False).kind == kind


def read_or_refuse(text: str) -> list[CodeObject]:
    try:
        return assembly.read(text, 4, 1024)
    except AssemblyError as error:
        assert str(error)
        return []


@pytest.mark.parametrize("arch", ARCHES)
def test_a_text_cut_off_anywhere_is_refused(arch: str, texts: dict[str, str]) -> None:
    text = texts[arch]
    assert len(read_or_refuse(text)) == 1
    end = text.index(".end_amdgpu_metadata") if arch != "sm_90" else text.index(".section")
    for length in range(0, end, max(1, end // 40)):
        assert read_or_refuse(text[:length]) == []


@pytest.mark.parametrize("arch", ARCHES)
def test_mutilated_text_is_read_or_refused(arch: str, texts: dict[str, str]) -> None:
    text = texts[arch]
    tail = max(0, text.find(".amdgpu_metadata"))
    place = st.integers(0, len(text)) | st.integers(tail, min(tail + 3000, len(text)))
    junk = st.text(max_size=20) | st.sampled_from(
        ["[[[[", "&a *a", "\n\t", ": ", "9" * 5000, "s_branch .LBB0_1\n", "!!x"]
    )

    @given(st.lists(st.tuples(place, st.integers(0, 60), junk), min_size=1, max_size=4))
    def check(edits: list[tuple[int, int, str]]) -> None:
        changed = text
        for start, length, new in edits:
            changed = changed[:start] + new + changed[start + length :]
        read_or_refuse(changed)

    check()


@pytest.mark.parametrize("text", ["", "hello", "\0", "Resource usage:", ".amdgpu_metadata\n---\n[" + "[" * 9000])
def test_what_is_no_assembly_is_refused(text: str) -> None:
    with pytest.raises(AssemblyError):
        assembly.read(text)


def test_launch_bounds_stand_in_for_unknown_warps(texts: dict[str, str]) -> None:
    assert assembly.read(texts["gfx942"])[0].num_warps == 4
    assert amdgcn.read(texts["gfx942"].replace(".max_flat_workgroup_size: 256", ""), 0, 0)[0].num_warps == 16


def test_a_binary_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="refuses the binary"):
        disassembly.of_cubin(b"not an ELF file")
