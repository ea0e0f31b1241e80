"""The catalogue's entries for Triton that only change numbers: tile sizes, warps, stages, AMD's options.

Sources: knowledge/triton-on-amd.md (options, figures), knowledge/memory-bound-kernels.md.
"""

from kernel_scientist.scientist.playbook import edits_triton as edits
from kernel_scientist.scientist.playbook.transformation import entry

TILES = ("BLOCK_M", "BLOCK_N", "BLOCK_SIZE_M", "BLOCK_SIZE_N")
DEPTHS = ("BLOCK_K", "BLOCK_SIZE_K")
BLOCKS = ("BLOCK", "BLOCK_SIZE", "BLOCK_COLS")
ROWS = ("BLOCK_ROWS", "ROWS")
COUNTS = ("CHUNKS", "UNROLL")

NUMBERS = (
    # 64 -> 128 in one dimension needs a quarter less of L2 per flop, in both dimensions half; fewer tiles may leave
    # units idle, which costs as much again
    entry(
        "larger-tile",
        "A larger tile of C reads each row and column panel fewer times.",
        (-30, 40),
        20,
        edits.larger(*TILES),
        "hbm cache l2 l1 lds",
    ),
    entry(
        "smaller-tile",
        "A smaller tile gives more programs to fill the units with, and needs fewer registers.",
        (-45, 40),
        20,
        edits.smaller(*TILES),
        "latency registers capacity",
    ),
    entry(
        "deeper-step",
        "A deeper step along k pays barriers and address arithmetic less often.",
        (-15, 20),
        15,
        edits.larger(*DEPTHS),
        "vector latency",
    ),
    entry(
        "shallower-step",
        "A shallower step needs less local memory and fewer registers, so more waves fit.",
        (-40, 15),
        15,
        edits.smaller(*DEPTHS),
        "registers capacity",
    ),
    # 4 B per lane instead of 16 B reach about half of the bandwidth
    entry(
        "larger-block",
        "More elements per lane make wider accesses and more bytes in flight.",
        (-15, 40),
        15,
        edits.larger(*BLOCKS),
        "hbm l1 latency launch",
    ),
    entry(
        "smaller-block",
        "Smaller blocks waste fewer idle lanes and balance better.",
        (-25, 25),
        15,
        edits.smaller(*BLOCKS),
        "registers",
    ),
    entry(
        "more-rows",
        "More rows per program share what all rows read, and fill a program when rows are short.",
        (-15, 25),
        20,
        edits.larger(*ROWS),
        "l1 l2 launch",
    ),
    entry(
        "fewer-rows", "Fewer rows per program need fewer registers.", (-15, 15), 15, edits.smaller(*ROWS), "registers"
    ),
    entry(
        "more-chunks",
        "Independent loads before the first store keep more bytes in flight.",
        (-10, 20),
        20,
        edits.larger(*COUNTS),
        "hbm latency",
    ),
    entry(
        "fewer-chunks",
        "Less work per program gives more programs, and fewer registers.",
        (-15, 10),
        15,
        edits.smaller(*COUNTS),
        "registers",
    ),
    # 128 x 128: 190 registers and 2 waves per SIMD with 4 warps, 70 and 7 with 8 (triton-on-amd, figures); but 64 x 64
    # of column-major fp8 is then read from local memory byte by byte
    entry(
        "more-warps",
        "Twice the waves halve the registers per lane of a tile and hide more latency.",
        (-40, 35),
        15,
        edits.larger("num_warps"),
        "latency registers vector",
    ),
    # 64 x 64 with 8 warps: 2-byte writes to local memory
    entry(
        "fewer-warps",
        "Fewer waves per tile give each lane wider accesses, and larger fragments to the matrix units.",
        (-25, 25),
        15,
        edits.smaller("num_warps"),
        "l1 lds",
    ),
    entry(
        "more-stages",
        "One stage more prefetches further ahead and hides memory latency.",
        (-15, 25),
        15,
        edits.larger("num_stages"),
        "latency hbm cache",
    ),
    entry(
        "fewer-stages",
        "One stage fewer saves local memory and registers; without a product nothing is pipelined anyway.",
        (-25, 12),
        15,
        edits.smaller("num_stages"),
        "registers capacity",
    ),
    # a step of occupancy, when just above one: 258 registers to 256 doubles the waves
    entry(
        "waves-per-eu",
        "Told how many waves are wanted, the compiler limits registers to let them fit.",
        (-20, 15),
        25,
        edits.others("waves_per_eu"),
        "latency registers",
    ),
    entry(
        "mfma-shape",
        "16 x 16 matrix instructions give finer fragments and fewer registers than 32 x 32 (AMD's advice for GEMM).",
        (-10, 12),
        25,
        edits.larger("matrix_instr_nonkdim"),
        "matrix registers lds",
    ),
    # 8-byte accesses to local memory become 16-byte ones: at best their time halves
    entry(
        "lds-vectors",
        "Packing twice as much along k (kpack) reads operands from local memory 16 bytes at a time.",
        (-5, 15),
        25,
        edits.others("kpack"),
        "lds",
    ),
    entry(
        "group-wider",
        "Groups near the square root of the tiles in flight on an XCD need the fewest distinct panels.",
        (-8, 15),
        20,
        edits.larger("GROUP_M"),
        "cache l2 hbm",
    ),
    entry(
        "group-narrower",
        "A lower group passes on to the next columns sooner, which suits few rows of tiles.",
        (-8, 10),
        20,
        edits.smaller("GROUP_M"),
        "cache l2 hbm",
    ),
)
