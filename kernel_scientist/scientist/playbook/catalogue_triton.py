"""The Triton catalogue: common optimisations of GPU kernels, mainly for CDNA3.

Sources: knowledge/{triton-on-amd, mi300-gemm-practice, xcd-swizzling, memory-bound-kernels}.md, which name theirs. A
predicted uplift is what such a change gained there or, in a comment, what the figures there allow. Statements on
compiled code are for Triton 3.7.1, the seeds and gfx942.

Entries that change a file's structure, and numbers that it does not declare, need a file in which one kernel is
launched once. Of files with several launches (moe, mla-decode) only declared tunables are changed.
"""

from kernel_scientist.scientist.playbook import edits_triton as edits
from kernel_scientist.scientist.playbook import edits_triton_access as access
from kernel_scientist.scientist.playbook import edits_triton_loops as loops
from kernel_scientist.scientist.playbook import edits_triton_operands as operands
from kernel_scientist.scientist.playbook import edits_triton_order as order
from kernel_scientist.scientist.playbook.transformation import Transformation, entry
from kernel_scientist.scientist.playbook.triton_file import structural

TILES = ("BLOCK_M", "BLOCK_N", "BLOCK_SIZE_M", "BLOCK_SIZE_N")
DEPTHS = ("BLOCK_K", "BLOCK_SIZE_K")
BLOCKS = ("BLOCK", "BLOCK_SIZE", "BLOCK_COLS")
ROWS = ("BLOCK_ROWS", "ROWS")
COUNTS = ("CHUNKS", "UNROLL")
PARTS = ("SPLITS",)

# fmt: off
NUMBERS = (  # only numbers change: tile sizes, warps, stages, AMD's options
    # 64 -> 128 in one dimension needs a quarter less of L2 per flop, in both dimensions half; fewer tiles may leave
    # compute units idle, which costs as much again
    entry("larger-tile", "A larger tile of C reads each row and column panel fewer times.",
          (-30, 40), 20, edits.larger(*TILES), "hbm cache l2 l1 lds"),
    entry("smaller-tile", "Smaller tiles give more programs to fill the GPU with, and need fewer registers.",
          (-45, 40), 20, edits.smaller(*TILES), "latency registers capacity"),
    entry("deeper-step", "Deeper steps along k pay for barriers and address arithmetic less often.",
          (-15, 20), 15, edits.larger(*DEPTHS), "vector latency"),
    entry("shallower-step", "Shallower steps need less local memory and fewer registers, so more waves fit.",
          (-40, 15), 15, edits.smaller(*DEPTHS), "registers capacity"),
    # accesses of 4 B per lane reach about half of the bandwidth of 16 B
    entry("larger-block", "More elements per lane give wider accesses and more bytes in flight.",
          (-15, 40), 15, edits.larger(*BLOCKS), "hbm l1 latency launch"),
    entry("smaller-block", "Smaller blocks have fewer idle lanes and balance better.",
          (-25, 25), 15, edits.smaller(*BLOCKS), "registers"),
    entry("more-rows", "More rows per program share common reads, and fill a program if rows are short.",
          (-15, 25), 20, edits.larger(*ROWS), "l1 l2 launch"),
    entry("fewer-rows", "Fewer rows need fewer registers.", (-15, 15), 15, edits.smaller(*ROWS), "registers"),
    entry("more-chunks", "Independent loads before the first store keep more bytes in flight.",
          (-10, 20), 20, edits.larger(*COUNTS), "hbm latency"),
    entry("fewer-chunks", "Less work per program gives more programs, and fewer registers.",
          (-15, 10), 15, edits.smaller(*COUNTS), "registers"),
    # mla-decode, 4 sequences: 4 programs for 304 compute units without splits
    entry("more-splits", "More parts of a long loop fill the GPU if other programs are few.",
          (-20, 60), 20, edits.larger(*PARTS), "latency"),
    entry("fewer-splits", "Fewer parts write and merge fewer intermediate results.",
          (-30, 25), 15, edits.smaller(*PARTS), "hbm cache l2 launch"),
    # 128 x 128: 190 registers and 2 waves per SIMD with 4 warps, 70 and 7 with 8 (triton-on-amd, figures); but 64 x 64
    # of column-major fp8 is then read from local memory byte by byte
    entry("more-warps", "Twice the waves halve the registers per lane of a tile and hide more latency.",
          (-40, 35), 15, edits.larger("num_warps"), "latency registers vector"),
    # 64 x 64 with 8 warps: 2-byte writes to local memory
    entry("fewer-warps", "Fewer waves per tile give each lane wider accesses and larger matrix fragments.",
          (-25, 25), 15, edits.smaller("num_warps"), "l1 lds"),
    entry("more-stages", "One more stage prefetches further ahead and hides memory latency.",
          (-15, 25), 15, edits.larger("num_stages"), "latency hbm cache"),
    entry("fewer-stages", "One stage less saves local memory and registers.",
          (-25, 12), 15, edits.smaller("num_stages"), "registers capacity"),
    # one more wave if the kernel is just above a step of occupancy: 258 to 256 registers doubles the waves
    entry("waves-per-eu", "With a given number of waves, the compiler limits registers so that they fit.",
          (-20, 15), 25, edits.others("waves_per_eu"), "latency registers"),
    entry("mfma-shape", "16 x 16 matrix instructions need fewer registers than 32 x 32 (AMD's advice for GEMM).",
          (-10, 12), 25, edits.larger("matrix_instr_nonkdim"), "matrix registers lds"),
    # 8-byte accesses to local memory become 16-byte ones, which at best halves their time
    entry("lds-vectors", "With twice the packing along k (kpack), local memory is read 16 bytes at a time.",
          (-5, 15), 25, edits.others("kpack"), "lds"),
    entry("group-wider", "Groups near the square root of the tiles in flight on an XCD need the fewest panels.",
          (-8, 15), 20, edits.larger("GROUP_M"), "cache l2 hbm"),
    entry("group-narrower", "Lower groups reach the next columns sooner, which suits few rows of tiles.",
          (-8, 10), 20, edits.smaller("GROUP_M"), "cache l2 hbm"),
)
ORDER = (
    # 38 tiles as 38 x 1 need 39 panels, as 6 x 6 and two need 13 (xcd-swizzling)
    entry("order-of-tiles", "With tiles in groups of rows, concurrent programs share panels of both operands in L2.",
          (0, 30), 35, structural(order.grouped_order), "cache l2 hbm"),
    # at best an eighth of the fetches, but only L2 misses count, and the Infinity Cache absorbs repeats
    entry("xcd-swizzle", "Contiguous tiles on one XCD share its L2 instead of being fetched by all eight.",
          (-3, 25), 55, structural(order.xcd_swizzle), "cache hbm"),
    # 1.05 rounds take as long as two: with one to three rounds the tail is 5 to 45 %
    entry("persistent-grid",
          "As many programs as run concurrently, each looping over tiles, leave no partial last round.",
          (-15, 15), 60, structural(order.persistent), "launch latency"),
    # 96 tiles use a third of 304 compute units; the partial sums cost some microseconds
    entry("split-k", "If there are fewer tiles than half of the compute units, splitting the sum over k uses the rest.",
          (-5, 60), 70, structural(order.split_k), "latency"),
)
OPERANDS = (
    # fp8 has twice the rate of fp16, and decoding takes about ten vector instructions per four bytes
    entry("native-fp8",
          "CDNA3 multiplies e4m3fnuz natively: twice the rate of fp16, half the local memory, no decoding.",
          (60, 300), 60, structural(operands.native_fp8), "matrix vector lds registers capacity"),
    # the first item in the winner's list (mi300-gemm-practice); costs a pass over A and B, little if tiles are many
    entry("k-major-inputs", "After one transposition of the inputs, the product loads 16 bytes along k at a time.",
          (-25, 50), 80, structural(operands.k_major_inputs), "vector lds l1"),
    # for the fp8 seeds the compiler then writes and reads single bytes in local memory
    entry("transposed-tile",
          "For a tile loaded along its contiguous dimension and then transposed, the compiler chooses the layout.",
          (-40, 10), 30, structural(operands.transposed_tiles)),
    # the compiler hoists most of it: the seed keeps its number of instructions, in another order
    entry("scalar-bases", "An advancing scalar and fixed offsets need no vector arithmetic for addresses in the loop.",
          (-2, 5), 20, structural(operands.scalar_bases), "vector registers"),
)
ACCESS = (
    # with buffer instructions a mask is one select per access: a fortieth of the fp8 kernel's instructions
    entry("even-masks",
          "Sizes that blocks divide need no masks: a specialised kernel has no comparisons and wider loads.",
          (-1, 6), 35, structural(access.even_masks), "vector l1"),
    # these three leave the seeds' code unchanged; they help only where the compiler lacks the information
    entry("contiguity",
          "If the compiler knows that a block's offsets are contiguous and aligned, loads have full width.",
          (-1, 2), 10, structural(access.contiguity)),
    entry("assumed-sizes",
          "For offsets known to be non-negative the compiler can use buffer instructions without masks.",
          (-1, 2), 10, structural(access.assumed)),
    entry("narrow-offsets", "32-bit offsets halve the address arithmetic and allow buffer instructions.",
          (-1, 3), 15, structural(access.narrow_offsets)),
    entry("streaming-store", "Output that is not read again need not evict inputs from L2.",
          (-8, 10), 30, access.cached("tl.store", ".cs"), "hbm cache l2"),
    entry("l2-only-load", "Data that a compute unit reads once does not benefit from its L1.",
          (-12, 8), 30, access.cached("tl.load", ".cg"), "hbm l1"),
)
LOOPS = (
    # two loads per step of 128 along k: a few hundred clocks unless something else hides them
    entry("early-scales", "Scales loaded before the product arrive while the matrix units work.",
          (-3, 12), 35, structural(loops.early_loads), "latency"),
    entry("hoisted-loads", "Loop-invariant loads can be done once before the loop.",
          (0, 20), 30, structural(loops.hoisted_loads), "l1 latency vector"),
    entry("loop-stages", "Software-pipelining a loop overlaps its loads with its arithmetic.",
          (-15, 15), 30, structural(loops.loop_stages), "latency hbm"),
    entry("loop-unroll", "Unrolling twice halves the branches and gives the scheduler more independent work.",
          (-25, 8), 25, structural(loops.unrolled), "vector latency"),
    # two reads and a write become one and one: a third fewer bytes, if the second read missed L2
    entry("one-pass", "A row that stays in registers is read once instead of twice.",
          (0, 50), 45, structural(loops.one_pass), "hbm cache l2 latency"),
)
# fmt: on
CATALOGUE: tuple[Transformation, ...] = (*NUMBERS, *ORDER, *OPERANDS, *ACCESS, *LOOPS)
