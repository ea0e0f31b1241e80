"""Describes a GPU kernel's code object in lines of text, for reports and prompts."""

from kernel_scientist.records.evaluation import CodeObject


def lines(code: CodeObject) -> list[str]:
    """Return one line per subject (registers, occupancy, ...), each beginning with its name."""
    return [
        f"registers  {code.vgpr} vector + {code.agpr} accumulation, {code.sgpr} scalar; {code.spills} spilled, "
        f"{code.scratch_bytes} B scratch per lane",
        f"occupancy  {code.occupancy} waves per SIMD ({4 * code.occupancy} per compute unit), "
        f"limited by {code.limited_by or 'nothing'}; {code.lds_bytes} B LDS per workgroup",
        f"matrix     {_counts(code.mfma) or 'no matrix instruction'}",
        f"memory     {_counts(code.accesses) or 'none'} (bits per lane)",
        f"code       {code.code_bytes} B, {code.waits} waits, {code.barriers} barriers",
    ]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} x {name}" for name, n in sorted(counts.items(), key=lambda p: -p[1]))
