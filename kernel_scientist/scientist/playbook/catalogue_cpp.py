"""The C++ catalogue: common optimisations of CPU kernels.

Sources: Goto and van de Geijn 2008 (blocking for caches); Intel and AMD optimisation manuals (vector width, prefetch,
dot-product instructions); GCC manual (flags). Predicted uplifts are what such changes gained elsewhere.
"""

from kernel_scientist.scientist.playbook import edits_cpp as edits
from kernel_scientist.scientist.playbook.transformation import Transformation, entry

# fmt: off
CATALOGUE: tuple[Transformation, ...] = (
    entry("vector-width", "Vectors as wide as the registers halve the instructions.", (20, 90), 30, edits.vector_width),
    entry("register-tile", "A tile that fills the registers without spilling gives the most arithmetic per load.",
          (10, 80), 45, edits.register_tile),
    entry("tile-rows", "More rows reuse each loaded column more often, until registers spill.",
          (-10, 25), 15, edits.steps("MR")),
    entry("tile-columns", "More vectors per row hide the latency of arithmetic.", (-10, 25), 15, edits.steps("NV")),
    entry("l1-depth", "A panel pair that fits in half of L1 is read at L1 speed.", (0, 20), 25, edits.depth_for_l1),
    entry("l2-depth", "Deeper panels save passes over the output tile as long as they fit in L2.",
          (-5, 25), 30, edits.depth_for_l2),
    entry("l2-rows", "A block of rows that fits in L2 is packed once and reused.", (-5, 20), 25, edits.rows_for_l2),
    entry("l2-columns", "A block of columns that fits in L2 avoids reading rows again.",
          (-5, 20), 25, edits.columns_for_l2),
    entry("unroll", "Unrolling reduces loop overhead and lets loads move ahead of arithmetic.",
          (-5, 12), 15, edits.steps("UNROLL")),
    entry("prefetch-distance", "Software prefetch hides memory latency that the hardware prefetcher misses.",
          (-5, 15), 30, edits.steps("PREFETCH")),
    entry("thread-count", "As many threads as cores; or one, if starting threads costs more than it gains.",
          (-40, 10), 10, edits.thread_count),
    entry("omp-schedule", "Dynamic schedules balance uneven blocks.", (-10, 10), 20, edits.schedule),
    entry("chunk-size", "Larger chunks pay the loop overhead less often; smaller ones balance better.",
          (-5, 15), 15, edits.steps("CHUNK")),
    entry("serial-threshold", "Small inputs are finished before a second thread wakes up.",
          (-5, 25), 20, edits.steps("SERIAL_BELOW")),
    entry("tile-loop-order", "The inner loop should traverse the operand that fits in the nearer cache.",
          (-8, 10), 35, edits.swap_loops("tile-order")),
    entry("block-loop-order", "Threads should share the operand that is more expensive to read.",
          (-8, 10), 35, edits.swap_loops("block-order")),
    entry("parallel-rows", "Rows are independent and can run on all cores.", (50, 100), 40, edits.parallel_rows),
    entry("accumulator-type", "fp32 sums use twice as many vector lanes as fp64 and stay within tolerance.",
          (0, 60), 35, edits.accumulator),
    entry("flag-reassociate", "The compiler can vectorise sums that it may reorder.",
          (-2, 40), 25, edits.flags(*edits.REASSOCIATE)),
    entry("flag-wide-vectors", "GCC prefers 256-bit vectors by default, even if 512-bit vectors run at full speed.",
          (-3, 30), 20, edits.wide_vectors),
    entry("flag-unroll-loops", "The compiler unrolls loops that the source does not.",
          (-5, 8), 10, edits.flags("-funroll-loops")),
    entry("flag-vectorise", "Without the flags that prevent it, the compiler vectorises the loop.",
          (20, 200), 20, edits.drop_flags),
    entry("restrict-pointers", "Pointers that cannot alias let the compiler keep values in registers.",
          (-2, 15), 20, edits.restrict),
    entry("vector-decode", "Shifts decode fp8 sixteen values at a time; table look-ups decode one.",
          (-10, 30), 60, edits.decode_avx512),
    entry("bf16-dot", "bf16 represents every fp8 value, and its dot product does twice the multiply-adds of fp32.",
          (40, 200), 85, edits.bf16_dot),
    entry("streaming-store", "Output that is not read again need not use the caches.", (-20, 40), 55, edits.stream),
)
# fmt: on
