"""Instructions of CDNA3 (gfx942) and CDNA4 (gfx950) that the machine refuses, and why.

Names: AMD, "AMD Instinct MI300 Instruction Set Architecture" and "CDNA4 Instruction Set Architecture". Runs in workers:
standard library only.
"""

import re

_EIGHT = ("fp8", "bf8")
_SCALED = (
    *("f16_bf8", "f16_fp8", "f32_bf8", "f32_fp8", "2xpk16_bf6_f32", "2xpk16_fp6_f32"),
    *(f"pk32_{wide}_{six}" for wide in ("f32", "f16", "bf16") for six in ("bf6", "fp6")),
    *(f"{sr}pk32_{six}_{wide}" for sr in ("", "sr_") for wide in ("f16", "bf16") for six in ("bf6", "fp6")),
    *("sr_pk32_bf6_f32", "sr_pk32_fp6_f32"),
    *(f"pk_{wide}_{small}" for wide in ("f32", "f16", "bf16") for small in ("bf8", "fp8", "fp4")),
    *(f"pk_{small}_{wide}" for wide in ("f32", "f16", "bf16") for small in ("bf8", "fp8", "fp4")),
    *(f"sr_{small}_{wide}" for wide in ("f32", "f16", "bf16") for small in ("bf8", "fp8", "pk_fp4")),
)
_FORMATS = tuple(
    f"buffer_{way}_format_{part}"
    for way in ("load", "store")
    for part in (*("x", "xy", "xyz", "xyzw"), *(f"d16_{x}" for x in ("x", "xy", "xyz", "xyzw", "hi_x")))
)
REFUSED: dict[str, tuple[str, ...]] = {
    "it is for graphics, video or typed buffers": (
        *("v_cubeid_f32", "v_cubema_f32", "v_cubesc_f32", "v_cubetc_f32", "v_qsad_pk_u16_u8", "v_mqsad_pk_u16_u8"),
        *("v_mqsad_u32_u8", "v_cvt_pk_u8_f32", "v_cvt_pkaccum_u8_f32", "v_screen_partition_4se_b32", *_FORMATS),
    ),
    "it serves debuggers, trap handlers or the host": (
        *("s_sendmsg", "s_sendmsghalt", "s_rfe_b64", "s_rfe_restore_b64", "s_cbranch_cdbgsys", "s_cbranch_cdbguser"),
        *("s_cbranch_cdbgsys_or_user", "s_cbranch_cdbgsys_and_user", "s_setkill", "s_endpgm_saved", "s_setvskip"),
        *("s_endpgm_ordered_ps_done", "v_clrexcp", "s_atc_probe", "s_atc_probe_buffer", "s_set_valu_coexec_mode"),
    ),
    "forks of control flow are not followed": ("s_cbranch_g_fork", "s_cbranch_i_fork", "s_cbranch_join"),
    "no compiler emits it for compute": (
        *("ds_condxchg32_rtn_b64", "ds_wrap_rtn_b32", "ds_read_addtid_b32", "ds_write_addtid_b32", "ds_append"),
        *("ds_consume", "ds_wrxchg2_rtn_b32", "ds_wrxchg2_rtn_b64", "ds_wrxchg2st64_rtn_b32", "ds_wrxchg2st64_rtn_b64"),
        *("s_store_dword", "s_store_dwordx2", "s_store_dwordx4", "s_buffer_store_dword", "s_dcache_discard"),
        *("s_dcache_discard_x2", "global_load_lds_sbyte", "global_load_lds_sshort", "scratch_load_lds_dword"),
        *("scratch_load_lds_ubyte", "scratch_load_lds_sbyte", "scratch_load_lds_ushort", "scratch_load_lds_sshort"),
    ),
    "gfx950's conversions with a scale are not there yet": (
        *(f"v_cvt_scalef32_{name}" for name in _SCALED),
        *("v_cvt_sr_bf16_f32", "v_cvt_sr_f16_f32"),
    ),
    "gfx950's matrices of scaled 8-, 6- and 4-bit numbers are not there yet": (
        *("v_mfma_f32_16x16x128_f8f6f4", "v_mfma_f32_32x32x64_f8f6f4", "v_mfma_scale_f32_16x16x128_f8f6f4"),
        *("v_mfma_scale_f32_32x32x64_f8f6f4", "v_mfma_ld_scale_b32"),
        *(f"v_smfmac_f32_{m}_{a}_{b}" for m in ("16x16x128", "32x32x64") for a in _EIGHT for b in _EIGHT),
    ),
    "gfx950's transposing loads from LDS are not there yet": (
        *("ds_read_b64_tr_b16", "ds_read_b64_tr_b8", "ds_read_b64_tr_b4", "ds_read_b96_tr_b6"),
    ),
}  # fmt: skip
"""Mnemonics without the suffix of their encoding, by the reason for which they are refused."""
_EIGHT_BITS = re.compile(r"_(?:fp8|bf8)(?:_|$)")


def foreign(name: str, arch: str) -> bool:
    """Return whether an instruction means another thing there: only gfx942 has 8-bit numbers in the FNUZ formats."""
    return arch != "gfx942" and _EIGHT_BITS.search(name) is not None


def reason(name: str) -> str:
    """Return why an instruction is refused."""
    return next((why for why, names in REFUSED.items() if name in names), "the machine does not know it")
