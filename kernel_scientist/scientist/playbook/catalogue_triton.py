"""The playbook's catalogue for Triton: what people try on a GPU kernel, first of all for CDNA3.

Sources: the digests in knowledge/ (triton-on-amd, mi300-gemm-practice, xcd-swizzling, memory-bound-kernels), which name
theirs. A predicted uplift is what such a change gave people there or, in a comment, what the figures there allow; what
is said of code is what Triton 3.7.1 made of the seeds for gfx942.
"""

from kernel_scientist.scientist.playbook import edits_triton_access as access
from kernel_scientist.scientist.playbook import edits_triton_loops as loops
from kernel_scientist.scientist.playbook import edits_triton_operands as operands
from kernel_scientist.scientist.playbook import edits_triton_order as order
from kernel_scientist.scientist.playbook.catalogue_triton_numbers import NUMBERS
from kernel_scientist.scientist.playbook.transformation import Transformation, entry
from kernel_scientist.scientist.playbook.tritonfile import structural

ORDER = (
    # 38 tiles as 38 x 1 need 39 panels, as 6 x 6 and two 13 (xcd-swizzling)
    entry(
        "order-of-tiles",
        "Tiles in groups of rows: programs that run together share panels of both operands in L2.",
        (0, 30),
        35,
        structural(order.grouped_order),
        "cache l2 hbm",
    ),
    # an eighth of the fetches at best, but only what L2 misses counts, and the Infinity Cache catches repeats
    entry(
        "xcd-swizzle",
        "Contiguous tiles on one XCD share its L2 instead of being fetched by all eight.",
        (-3, 25),
        55,
        structural(order.xcd_swizzle),
        "cache hbm",
    ),
    # 1.05 rounds cost two: the tail is 5 to 45 % for one to three rounds
    entry(
        "persistent-grid",
        "As many programs as run at a time, each looping over tiles, start once and leave no ragged last round.",
        (-15, 15),
        60,
        structural(order.persistent),
        "launch latency",
    ),
    # 96 tiles on 304 units are a third of them; the parts cost some microseconds
    entry(
        "split-k",
        "Where tiles are fewer than half of the units, sharing the sum over k fills the rest.",
        (-5, 60),
        70,
        structural(order.split_k),
        "latency",
    ),
)
OPERANDS = (
    # fp8 at twice the rate of fp16, and no decoding: some ten vector instructions per four bytes
    entry(
        "native-fp8",
        "CDNA3 multiplies e4m3fnuz as it is: twice the rate of fp16, half the local memory, nothing to decode.",
        (60, 300),
        60,
        structural(operands.native_fp8),
        "matrix vector lds registers capacity",
    ),
    # the first thing in the winner's own list; an extra pass over A and B, cheap where tiles are many
    entry(
        "k-major-inputs",
        "Inputs transposed once, the product loads 16 bytes along k and writes them to local memory as they are.",
        (-25, 50),
        80,
        structural(operands.k_major_inputs),
        "vector lds l1",
    ),
    # on the fp8 seeds the compiler writes single bytes to local memory then, and reads single bytes from it
    entry(
        "transposed-tile",
        "A tile loaded along its contiguous dimension and turned by tl.trans lets the compiler choose the layout.",
        (-40, 10),
        30,
        structural(operands.transposed_tiles),
    ),
    # the compiler hoists most of it: the seed keeps its number of instructions, in another order
    entry(
        "scalar-bases",
        "A scalar that advances and offsets that stay need no vector arithmetic for addresses in the loop.",
        (-2, 5),
        20,
        structural(operands.scalar_bases),
        "vector registers",
    ),
)
ACCESS = (
    # with buffer instructions a mask is a select per access: a fortieth of the fp8 kernel's instructions
    entry(
        "even-masks",
        "Sizes that blocks divide need no masks: a kernel of their own compares nothing and loads wider.",
        (-1, 6),
        35,
        structural(access.even_masks),
        "vector l1",
    ),
    # the seeds' code is the same with these three: they count where the compiler cannot see it for itself
    entry(
        "contiguity",
        "Told that a block's offsets follow one another from a multiple of its size, loads are as wide as can be.",
        (-1, 2),
        10,
        structural(access.contiguity),
    ),
    entry(
        "assumed-sizes",
        "Offsets known not to be negative let the compiler use buffer instructions, which need no masks.",
        (-1, 2),
        10,
        structural(access.assumed),
    ),
    entry(
        "narrow-offsets",
        "Offsets of 32 bits halve the address arithmetic and allow buffer instructions.",
        (-1, 3),
        15,
        structural(access.narrow_offsets),
    ),
    entry(
        "streaming-store",
        "Output that is not read again need not push inputs out of L2.",
        (-8, 10),
        30,
        access.cached("tl.store", ".cs"),
        "hbm cache l2",
    ),
    entry(
        "l2-only-load",
        "Data that a unit reads once gains nothing from its first-level cache.",
        (-12, 8),
        30,
        access.cached("tl.load", ".cg"),
        "hbm l1",
    ),
)
LOOPS = (
    # two loads per step of 128 along k: a few hundred clocks where nothing else hides them
    entry(
        "early-scales",
        "Scales loaded before the product arrive while the matrix units work.",
        (-3, 12),
        35,
        structural(loops.early_loads),
        "latency",
    ),
    entry(
        "hoisted-loads",
        "What every round of a loop loads again can be loaded once before it.",
        (0, 20),
        30,
        structural(loops.hoisted_loads),
        "l1 latency vector",
    ),
    entry(
        "loop-stages",
        "Stages of a loop's own overlap its loads with its arithmetic.",
        (-15, 15),
        30,
        structural(loops.loop_stages),
        "latency hbm",
    ),
    entry(
        "loop-unroll",
        "Two rounds in one pay branches half as often and give the scheduler more to choose from.",
        (-25, 8),
        25,
        structural(loops.unrolled),
        "vector latency",
    ),
    # two reads and a write become one and one: a third of the bytes, if the second read missed L2
    entry(
        "one-pass",
        "A row that stays in registers is read once instead of twice.",
        (0, 50),
        45,
        structural(loops.one_pass),
        "hbm cache l2 latency",
    ),
)
CATALOGUE: tuple[Transformation, ...] = (*NUMBERS, *ORDER, *OPERANDS, *ACCESS, *LOOPS)
