"""The C++ catalogue: common optimisations of CPU kernels.

Each edit checks its precondition and returns the variants that it can make. Tunables are named as in BLIS: MR x (NV
vectors of VEC) is the register tile, KC the depth of a panel, MC x NC a block of the output. Sources: Goto and van de
Geijn 2008 (blocking for caches); Intel and AMD optimisation manuals (vector width, prefetch, dot-product
instructions); GCC manual (flags). Predicted uplifts are what such changes gained elsewhere.
"""

import re
from collections.abc import Sequence

from kernel_scientist.compilers.source import KernelSource, Value
from kernel_scientist.scientist.playbook.amx import amx_overlap, amx_stream, amx_tiles
from kernel_scientist.scientist.playbook.transformation import Apply, Transformation, Variant, entry, fragment
from kernel_scientist.scientist.roles import CpuInfo

CACHES = {"L1": 32 << 10, "L2": 512 << 10}
"""Sizes in bytes where the machine does not tell them."""
REASSOCIATE = ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno")
"""Reordering of sums, as with -ffast-math, but without its start-up code, which flushes fp8's frequent subnormals."""


def _set(source: KernelSource, **values: Value) -> list[Variant]:
    """Return the variant that sets declared tunables; none if one is missing or not a choice, or nothing changes."""
    current, choices = source.tunables, source.choices
    if any(k not in current or v not in choices.get(k, []) for k, v in values.items()):
        return []
    changes = {k: v for k, v in values.items() if current[k] != v}
    if not changes:
        return []
    detail = ", ".join(f"{k} {current[k]} -> {v}" for k, v in changes.items())
    return [Variant(detail, tuple(f"set {k} to {v}" for k, v in changes.items()), source.with_tunables(changes))]


def _neighbours(source: KernelSource, name: str) -> list[Variant]:
    """Return the variants that move a tunable one choice up and one down."""
    choices, current = source.choices.get(name, []), source.tunables.get(name)
    if current not in choices:
        return []
    index = choices.index(current)
    return [v for i in (index + 1, index - 1) if 0 <= i < len(choices) for v in _set(source, **{name: choices[i]})]


def steps(name: str) -> Apply:
    """Return the edit that moves tunable `name` one choice up or down."""
    return lambda source, cpu: _neighbours(source, name)


def _number(source: KernelSource, name: str, default: int = 1) -> int:
    value = source.tunables.get(name, default)
    return int(value) if isinstance(value, (int, float)) else default


def _fit(source: KernelSource, name: str, bytes_each: float, cache: int) -> list[Variant]:
    """Return variants with the largest choice whose working set fits in half a cache, and with the next larger one."""
    fitting = [c for c in source.choices.get(name, []) if isinstance(c, int) and c * bytes_each <= cache / 2]
    if not fitting or not bytes_each:
        return []
    larger = [c for c in source.choices[name] if isinstance(c, int) and c > max(fitting)][:1]
    return [v for c in (max(fitting), *larger) for v in _set(source, **{name: c})]


def vector_width(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Set VEC to the number of elements of the widest register."""
    element = 2 if re.search(r"uint16_t vec\b", source.text) else 4
    return _set(source, VEC=cpu.vector_bytes // element)


def depth_for(cache: str) -> Apply:
    """Return the edit that fits KC to half of a cache."""

    def apply(source: KernelSource, cpu: CpuInfo) -> Sequence[Variant]:
        tile = _number(source, "MR") + _number(source, "NV") * _number(source, "VEC")
        return _fit(source, "KC", 4 * tile, cpu.caches.get(cache, CACHES[cache]))

    return apply


def block_for_l2(name: str) -> Apply:
    """Return the edit that fits MC or NC to half of the second-level cache."""
    return lambda source, cpu: _fit(source, name, 4 * _number(source, "KC"), cpu.caches.get("L2", CACHES["L2"]))


def register_tile(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Use at most three quarters of the registers for accumulators; the rest holds operands."""
    if "_tile_" in source.text:
        return []  # AMX's tiles are registers of their own
    registers = 32 if cpu.vector_bytes == 64 or "asimd" in cpu.features else 16
    variants: list[Variant] = []
    for nv in (1, 2):
        rows = [c for c in source.choices.get("MR", []) if isinstance(c, int) and c * nv <= registers * 3 // 4]
        if rows:
            variants += _set(source, MR=max(rows), NV=nv)
    return variants


def thread_count(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Set THREADS to one, or to the number of cores."""
    return [v for n in (1, cpu.cores) for v in _set(source, THREADS=n)]


def _replace(source: KernelSource, pattern: str, new: str, detail: str, rubric: str) -> list[Variant]:
    text, count = re.subn(pattern, new, source.text)
    return [Variant(detail, (rubric,), KernelSource(text))] if count and text != source.text else []


def schedule(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Give every parallel loop another schedule."""
    kinds = [k for k in ("static", "dynamic", "guided") if f"schedule({k})" not in source.text]
    return [
        v
        for kind in kinds
        for v in _replace(
            source, r"schedule\((static|dynamic|guided)\)", f"schedule({kind})", f"schedule({kind})",
            f"change the schedule clause of every parallel loop to {kind}",
        )
    ]  # fmt: skip


def swap_loops(site: str) -> Apply:
    """Return the edit that exchanges the two loops at a site."""

    def apply(source: KernelSource, cpu: CpuInfo) -> Sequence[Variant]:
        body = source.site(site)
        lines = [line for line in (body or "").splitlines() if line.strip().startswith("for ")]
        if body is None or len(lines) != 2:
            return []
        first, second = (line.strip() for line in lines)
        brace = " {" if second.endswith("{") else ""
        swapped = body.replace(first, "\0").replace(second, first + brace).replace("\0", second.removesuffix(" {"))
        return [
            Variant(f"{site} swapped", (f"exchange the two loops at site {site}",), source.with_site(site, swapped))
        ]

    return apply


def parallel_rows(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Run the loop at site `rows` in parallel."""
    body = source.site("rows")
    if body is None or "#pragma omp" in body or cpu.cores < 2:
        return []
    new = source.with_site("rows", "    #pragma omp parallel for schedule(static)\n" + body)
    return [Variant("parallel rows", ("put `#pragma omp parallel for` before the loop at site rows",), new)]


def accumulator(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Sum in float where the source sums in double."""
    body = source.site("accumulator")
    if body is None or "double" not in body:
        return []
    rubric = ("declare the sum at site accumulator as float",)
    return [Variant("double -> float", rubric, source.with_site("accumulator", body.replace("double", "float")))]


def flags(*flags: str) -> Apply:
    """Return the edit that adds compiler flags."""

    def apply(source: KernelSource, cpu: CpuInfo) -> Sequence[Variant]:
        if source.literal("FLAGS") is None or set(flags) <= set(source.flags):
            return []
        new = [*source.flags, *(f for f in flags if f not in source.flags)]
        return [Variant(" ".join(flags), (f"add {' '.join(flags)} to FLAGS",), source.with_flags(new))]

    return apply


def wide_vectors(source: KernelSource, cpu: CpuInfo) -> Sequence[Variant]:
    """Tell GCC to use 512-bit vectors if the machine has them."""
    return flags("-mprefer-vector-width=512")(source, cpu) if cpu.vector_bytes == 64 else []


def drop_flags(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Remove flags that prevent vectorisation."""
    preventing = [f for f in source.flags if f.startswith("-fno-tree")]
    if not preventing:
        return []
    new = source.with_flags([f for f in source.flags if f not in preventing])
    return [Variant("without " + " ".join(preventing), (f"remove {' '.join(preventing)} from FLAGS",), new)]


def restrict(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Declare pointer parameters __restrict."""
    match = re.search(r'extern "C" void \w+\((?P<parameters>[^)]*)\)', source.text)
    if match is None or "__restrict" in match["parameters"]:
        return []
    parameters = re.sub(r"\*\s*(\w+)", r"* __restrict \1", match["parameters"])
    new = source.text[: match.start("parameters")] + parameters + source.text[match.end("parameters") :]
    return [Variant("__restrict", ("declare every pointer parameter __restrict",), KernelSource(new))]


def decode_avx512(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Decode fp8 by shifts, sixteen at a time (site `decode`)."""
    body = source.site("decode")
    if body is None or "decode_row" not in body or "_mm512" in body:
        return []
    if source.text.count("decode_row(") == body.count("decode_row("):
        return []  # unused: the call sites have been replaced
    if not {"avx512bw", "avx512vl"} <= cpu.features:
        return []
    rubric = ("replace site decode: 16 bytes a step, exponent and mantissa shifted into place, NaN blended in",)
    return [Variant("16 at a time", rubric, source.with_site("decode", fragment("decode_avx512")))]


def bf16_dot(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Multiply decoded fp8 in bf16 pairs with vdpbf16ps (site `core`)."""
    body = source.site("core")
    if body is None or "dpbf16" in body or not {"avx512_bf16", "avx512bw"} <= cpu.features:
        return []
    if "decode_row(" not in source.text or not {"VEC", "MR", "NV"} <= set(source.tunables):
        return []
    rubric = (
        "pack panels as bf16 pairs along k (exact for fp8)",
        "multiply with vdpbf16ps into fp32 accumulators",
        "apply scales to the accumulators once per 128 k, not to the panels",
        "VEC 16, register tile 8 x 2 vectors",
    )
    edited = source.with_site("core", fragment("core_bf16_dot"))
    return [Variant("vdpbf16ps", rubric, edited.with_tunables({"VEC": 16, "MR": 8, "NV": 2}))]


def stream(source: KernelSource, cpu: CpuInfo) -> list[Variant]:
    """Use non-temporal stores (site `store`)."""
    body = source.site("store")
    if body is None or "_mm512_stream" in body or "avx512f" not in cpu.features:
        return []
    rubric = ("align the destination, then write whole cache lines with non-temporal stores", "end with a store fence")
    return [Variant("non-temporal", rubric, source.with_site("store", fragment("store_stream")))]


def crossover(source: KernelSource, other: KernelSource) -> list[Variant]:
    """Return the base with another kernel's values for the tunables that both declare."""
    shared = {k: v for k, v in other.tunables.items() if k in source.tunables}
    return _set(source, **shared)


# fmt: off
CATALOGUE: tuple[Transformation, ...] = (
    entry("vector-width", "Vectors as wide as the registers halve the instructions.", (20, 90), 30, vector_width),
    entry("register-tile", "A tile that fills the registers without spilling gives the most arithmetic per load.",
          (10, 80), 45, register_tile),
    entry("tile-rows", "More rows reuse each loaded column more often, until registers spill.",
          (-10, 25), 15, steps("MR")),
    entry("tile-columns", "More vectors per row hide the latency of arithmetic.", (-10, 25), 15, steps("NV")),
    entry("l1-depth", "A panel pair that fits in half of L1 is read at L1 speed.", (0, 20), 25, depth_for("L1")),
    entry("l2-depth", "Deeper panels save passes over the output tile as long as they fit in L2.",
          (-5, 25), 30, depth_for("L2")),
    entry("l2-rows", "A block of rows that fits in L2 is packed once and reused.", (-5, 20), 25, block_for_l2("MC")),
    entry("l2-columns", "A block of columns that fits in L2 avoids reading rows again.",
          (-5, 20), 25, block_for_l2("NC")),
    entry("unroll", "Unrolling reduces loop overhead and lets loads move ahead of arithmetic.",
          (-5, 12), 15, steps("UNROLL")),
    entry("prefetch-distance", "Software prefetch hides memory latency that the hardware prefetcher misses.",
          (-5, 15), 30, steps("PREFETCH")),
    entry("thread-count", "As many threads as cores; or one, if starting threads costs more than it gains.",
          (-40, 10), 10, thread_count),
    entry("omp-schedule", "Dynamic schedules balance uneven blocks.", (-10, 10), 20, schedule),
    entry("chunk-size", "Larger chunks pay the loop overhead less often; smaller ones balance better.",
          (-5, 15), 15, steps("CHUNK")),
    entry("serial-threshold", "Small inputs are finished before a second thread wakes up.",
          (-5, 25), 20, steps("SERIAL_BELOW")),
    entry("tile-loop-order", "The inner loop should traverse the operand that fits in the nearer cache.",
          (-8, 10), 35, swap_loops("tile-order")),
    entry("block-loop-order", "Threads should share the operand that is more expensive to read.",
          (-8, 10), 35, swap_loops("block-order")),
    entry("parallel-rows", "Rows are independent and can run on all cores.", (50, 100), 40, parallel_rows),
    entry("accumulator-type", "fp32 sums use twice as many vector lanes as fp64 and stay within tolerance.",
          (0, 60), 35, accumulator),
    entry("flag-reassociate", "The compiler can vectorise sums that it may reorder.",
          (-2, 40), 25, flags(*REASSOCIATE)),
    entry("flag-wide-vectors", "GCC prefers 256-bit vectors by default, even if 512-bit vectors run at full speed.",
          (-3, 30), 20, wide_vectors),
    entry("flag-unroll-loops", "The compiler unrolls loops that the source does not.",
          (-5, 8), 10, flags("-funroll-loops")),
    entry("flag-vectorise", "Without the flags that prevent it, the compiler vectorises the loop.",
          (20, 200), 20, drop_flags),
    entry("restrict-pointers", "Pointers that cannot alias let the compiler keep values in registers.",
          (-2, 15), 20, restrict),
    entry("vector-decode", "Shifts decode fp8 sixteen values at a time; table look-ups decode one.",
          (-10, 30), 60, decode_avx512),
    entry("bf16-dot", "bf16 represents every fp8 value, and its dot product does twice the multiply-adds of fp32.",
          (40, 200), 85, bf16_dot),
    entry("amx-tiles", "A matrix unit multiplies sixteen rows by sixteen columns at once, in bf16.",
          (150, 800), 92, amx_tiles),
    entry("overlap-scaling", "The vector unit scales one block's products while the matrix unit multiplies the next.",
          (0, 20), 70, amx_overlap),
    entry("decode-next", "The vector unit decodes the next columns while the matrix unit multiplies these.",
          (-10, 40), 75, amx_stream),
    entry("streaming-store", "Output that is not read again need not use the caches.", (-20, 40), 55, stream),
)
# fmt: on
