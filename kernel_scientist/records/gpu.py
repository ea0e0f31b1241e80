"""Records of what a kernel is on a GPU: its code objects, its launches, what a performance model expects of them."""

from pydantic import Field

from kernel_scientist.records.base import Finite, Record


class CodeObject(Record):
    """A kernel's machine code for one GPU, and its metadata. Registers are per lane."""

    kernel: str
    arch: str
    """`gfx942`, `gfx950`, `sm_90`, ..."""
    digest: str
    """sha256 of the assembly."""
    num_warps: int
    vgpr: int
    """Vector registers, accumulation registers not counted; on NVIDIA all registers."""
    agpr: int = 0
    sgpr: int = 0
    spills: int = 0
    """Registers spilled to scratch memory, vector and scalar ones; on NVIDIA bytes stored."""
    scratch_bytes: int = 0
    """Per lane."""
    lds_bytes: int = 0
    """Of a workgroup: local data share, on NVIDIA shared memory; what is allocated at the launch included."""
    code_bytes: int = 0
    occupancy: int = 0
    """Waves per SIMD that fit at the same time (on NVIDIA: warps per scheduler)."""
    limited_by: str = ""
    """What occupancy ends at: `waves`, `registers`, `lds`, `workgroup`."""
    mfma: dict[str, int] = Field(default_factory=dict)
    """Matrix instructions in the code, by name without suffixes, such as `v_mfma_f32_32x32x16_fp8_fp8`."""
    accesses: dict[str, int] = Field(default_factory=dict)
    """Memory instructions in the code by kind and bits per lane, such as `buffer_load 128`, `ds_write 16`."""
    waits: int = 0
    barriers: int = 0
    mix: tuple[dict[str, int], ...] = ()
    """Instructions by class and by how many loops they stand in: `mix[1]` is the code of loops that stand in none."""


class Launch(Record):
    """A kernel as a submission starts it in one case."""

    case: str
    kernel: str
    grid: tuple[int, int, int]
    num_warps: int
    num_stages: int = 0
    constants: dict[str, str] = Field(default_factory=dict)
    """Compile-time arguments."""
    code: int
    """Number of its code object in the report's list."""
    autotuned: int = 0
    """Configurations of the autotuner for this launch, of which this is one; 0: none."""


class Prediction(Record):
    """What the performance model says of a kernel on one case. Never a measurement."""

    case: str
    machine: str
    time_us: Finite
    floor_us: Finite
    """Roofline floor of the case on that machine."""
    limited_by: str
    """The resource that takes longest: `hbm`, `cache`, `l2`, `l1`, `lds`, `matrix`, `vector`, `latency`, `launch`."""
    breakdown_us: dict[str, Finite] = Field(default_factory=dict)
    """Time that each resource alone would take, in us."""
    words: tuple[str, ...] = ()
    """What to do about it, for a designer."""
    calibrated: str = ""
    """Machine and date of the calibration that its constants come from; empty: none."""


class Figures(Record):
    """What counts come to. None: it was not counted."""

    hbm_read_bytes: Finite | None = None
    """From memory into L2. On AMD hits in the Infinity Cache are in it: an upper bound."""
    hbm_written_bytes: Finite | None = None
    """From L2 to memory, in the same manner."""
    l2_hit_rate: Finite | None = None
    """Share of L2's requests (NVIDIA: sectors) that it had."""
    lds_conflicts_per_access: Finite | None = None
    """What bank conflicts cost per access that has none, in cycles per cycle (NVIDIA: passes per pass)."""
    matrix_share: Finite | None = None
    """Matrix instructions among the vector ones (NVIDIA: among all)."""
    matrix_flops: Finite | None = None
    """What the matrix units computed, of all types together (AMD alone)."""
    occupancy: Finite | None = None
    """Waves (warps) that were there, as a share of those that a busy CU (SM) can hold."""
    stalls: dict[str, Finite] = Field(default_factory=dict[str, float])
    """Warps that waited per instruction issued, by reason (NVIDIA alone)."""


class Counters(Record):
    """What was counted of one kernel in one call of a submission on one case."""

    case: str
    kernel: str
    """As the profiler names it, without arguments."""
    tool: str
    """`rocprofv3` or `ncu`."""
    dispatches: int
    counts: dict[str, Finite]
    """By the tool's own names: sums over the dispatches, means of what is a share already."""
    figures: Figures
