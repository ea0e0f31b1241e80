"""The playbook's catalogue for C++: what people try on a CPU kernel.

Sources: Goto and van de Geijn 2008 (blocking for caches); Intel and AMD optimisation manuals (vector width, prefetch,
dot-product instructions); GCC manual (flags). Predicted uplifts are what such a change gave people elsewhere.
"""

from kernel_scientist.scientist.playbook import edits_cpp as edits
from kernel_scientist.scientist.playbook.transformation import Transformation

CATALOGUE: tuple[Transformation, ...] = (
    Transformation(
        "vector-width",
        "A vector as wide as the machine's registers halves the instructions.",
        (20, 90),
        30,
        edits.vector_width,
    ),
    Transformation(
        "register-tile",
        "A tile that fills the registers without spilling gives the most arithmetic per load.",
        (10, 80),
        45,
        edits.register_tile,
    ),
    Transformation(
        "tile-rows",
        "More rows reuse each loaded column more often, until registers spill.",
        (-10, 25),
        15,
        edits.steps("MR"),
    ),
    Transformation(
        "tile-columns", "More vectors in a row hide the latency of the arithmetic.", (-10, 25), 15, edits.steps("NV")
    ),
    Transformation(
        "l1-depth",
        "A panel pair that stays in half the first-level cache is read at its speed.",
        (0, 20),
        25,
        edits.depth_for_l1,
    ),
    Transformation(
        "l2-depth",
        "Deeper panels save passes over the output tile as long as they stay in the second level.",
        (-5, 25),
        30,
        edits.depth_for_l2,
    ),
    Transformation(
        "l2-rows",
        "A block of rows sized for the second-level cache is packed once and reused.",
        (-5, 20),
        25,
        edits.rows_for_l2,
    ),
    Transformation(
        "l2-columns",
        "A block of columns sized for the second-level cache saves reading rows again.",
        (-5, 20),
        25,
        edits.columns_for_l2,
    ),
    Transformation(
        "unroll",
        "Unrolling hides loop overhead and lets loads move ahead of arithmetic.",
        (-5, 12),
        15,
        edits.steps("UNROLL"),
    ),
    Transformation(
        "prefetch-distance",
        "Fetching ahead hides memory latency that the hardware does not guess.",
        (-5, 15),
        30,
        edits.steps("PREFETCH"),
    ),
    Transformation(
        "thread-count",
        "Exactly as many threads as cores; or one, where starting them costs more than it gives.",
        (-40, 10),
        10,
        edits.thread_count,
    ),
    Transformation(
        "omp-schedule",
        "Uneven blocks finish together when threads take them as they go.",
        (-10, 10),
        20,
        edits.schedule,
    ),
    Transformation(
        "chunk-size",
        "Larger pieces pay the loop's overhead less often; smaller ones balance better.",
        (-5, 15),
        15,
        edits.steps("CHUNK"),
    ),
    Transformation(
        "serial-threshold",
        "Small inputs are done before a second thread is awake.",
        (-5, 25),
        20,
        edits.steps("SERIAL_BELOW"),
    ),
    Transformation(
        "tile-loop-order",
        "The inner loop should walk the operand that fits the nearer cache.",
        (-8, 10),
        35,
        edits.swap_loops("tile-order"),
    ),
    Transformation(
        "block-loop-order",
        "Threads should share the operand that is more expensive to read.",
        (-8, 10),
        35,
        edits.swap_loops("block-order"),
    ),
    Transformation(
        "parallel-rows", "Rows are independent: share them among cores.", (50, 100), 40, edits.parallel_rows
    ),
    Transformation(
        "accumulator-type",
        "fp32 sums vectorise twice as wide as fp64 and are within tolerance.",
        (0, 60),
        35,
        edits.accumulator,
    ),
    Transformation(
        "flag-reassociate",
        "Sums that may be reordered can be vectorised by the compiler.",
        (-2, 40),
        25,
        edits.flags(*edits.REASSOCIATE),
    ),
    Transformation(
        "flag-wide-vectors",
        "GCC prefers 256-bit vectors by default even where 512-bit ones are full speed.",
        (-3, 30),
        20,
        edits.wide_vectors,
    ),
    Transformation(
        "flag-unroll-loops",
        "The compiler unrolls what the source does not.",
        (-5, 8),
        10,
        edits.flags("-funroll-loops"),
    ),
    Transformation(
        "flag-vectorise",
        "Without the flags that forbid it, the compiler vectorises the loop.",
        (20, 200),
        20,
        edits.drop_flags,
    ),
    Transformation(
        "restrict-pointers",
        "Pointers that cannot alias let the compiler keep values in registers.",
        (-2, 15),
        20,
        edits.restrict,
    ),
    Transformation(
        "vector-decode",
        "fp8 is decoded by shifts, sixteen at a time, instead of by table look-ups.",
        (-10, 30),
        60,
        edits.decode_avx512,
    ),
    Transformation(
        "bf16-dot",
        "bf16 holds every fp8 value, and its dot product does twice the multiply-adds of fp32.",
        (40, 200),
        85,
        edits.bf16_dot,
    ),
    Transformation(
        "streaming-store",
        "Output that is not read again need not pass through the caches.",
        (-20, 40),
        55,
        edits.stream,
    ),
)
