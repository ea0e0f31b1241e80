"""Edits for AMX, the matrix unit of Intel's server CPUs (Intel, Optimization Reference Manual, chapter on AMX).

The first replaces the core of a blocked kernel, on fp8 or bf16 operands; the others change the structure of that core.
Int8 has no edit: no problem has int8 operands, and an fp8 value would need three int8 parts.
"""

from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.scientist.playbook.transformation import Variant, fragment
from kernel_scientist.scientist.roles import CpuInfo

AMX = frozenset(("amx_tile", "amx_bf16", "avx512bw", "avx512vbmi"))
"""What the AMX core needs: tiles, and permutes of bytes that decode fp8."""
AMX_OPERANDS = {"fp8": "decode_row(", "bf16": "from_bf16("}
"""Operands that an AMX core packs, and what tells them in a source."""
REGION = "#pragma omp parallel num_threads(threads)\n    {\n"
"""Where a thread of a blocked kernel starts."""


def amx_tiles(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Multiply in AMX tiles (site `core`), of fp8 or bf16 operands."""
    body, fixed = source.site("core") or "", {"VEC": 16, "MR": 32, "NV": 4, "UNROLL": 1}
    operands = next((name for name, word in AMX_OPERANDS.items() if word in source.text), None)
    edits = {"pack<MR>(": "pack_rows<MR>(", REGION: f"{REGION}        Tiles tiles;\n"}
    if operands is None or "micro(" not in body or "_tile_" in body or not cpu.features >= AMX:
        return []
    if any(source.text.count(old) != 1 for old in edits) or not set(fixed) <= set(source.choices):
        return []
    rubric = (
        "ask Linux for the tile registers, configure them in every thread, release them at its end",
        "pack panels as bf16 tiles of 16 rows x 32 k and 16 pairs of k x 16 columns",
        "multiply two by two tiles with tdpbf16ps into fp32",
        *(("decode 64 values at a time", "add products, scaled, once per 128 k") if operands == "fp8" else ()),
        "register tile 32 x 64",
    )
    text = source.with_site("core", fragment("amx_tiles") + "\n" + fragment(f"core_amx_{operands}")).text
    for old, new in edits.items():
        text = text.replace(old, new)
    choices = {"VEC": [16], "MR": [32, 64], "NV": [4, 8], "UNROLL": [1]}
    return [Variant("tdpbf16ps", rubric, KernelSource(text).with_tunables(fixed).with_choices(choices))]


def amx_overlap(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Scale a block's products while the next block is multiplied (site `scale-block` of the AMX core)."""
    body = source.site("scale-block")
    if body is None or "before" in body:
        return []
    rubric = ("keep the products of two scale blocks", "add a quarter of the block before after each step of 32 k")
    return [Variant("scale one block behind", rubric, source.with_site("scale-block", fragment("amx_overlap")))]


def amx_stream(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Decode the next panel of columns while this one is multiplied (site `threads` around an AMX core)."""
    body = source.site("threads") or ""
    if "pack_step" in body or "pack_step" not in (source.site("core") or ""):
        return []
    rubric = (
        "give every thread columns of its own, and two panels for them",
        "decode a part of the next panel after each step of 32 k, in the vector unit",
        "pack only the rows beforehand: one barrier",
    )
    edited, idle = source.with_site("threads", fragment("amx_stream")), ("KC", "MC", "NC")
    fixed = {name: [source.tunables[name]] for name in idle if name in source.choices}
    return [Variant("own columns", rubric, edited.with_choices(fixed))]
