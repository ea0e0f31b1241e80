"""Records of a kernel on a GPU: its code objects, its launches, the performance model's predictions."""

from typing import Annotated, Literal

from pydantic import Field

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.source_line import SourceLine


class CodeObject(Record):
    """A kernel's machine code for one GPU, and its metadata. Registers are per lane."""

    kernel: str
    """The kernel's name."""
    arch: str
    """`gfx942`, `gfx950`, `sm_90`, ..."""
    digest: str
    """sha256 of the assembly."""
    num_warps: int
    """Waves (warps) of a workgroup."""
    vgpr: int
    """Vector registers that it uses, without accumulation registers; on NVIDIA all registers."""
    agpr: int = 0
    """Accumulation registers that it uses (AMD only)."""
    sgpr: int = 0
    """Scalar registers that it uses (AMD only)."""
    reserved_vgpr: int = 0
    """Registers that a wave reserves, accumulation registers included: more than it uses if few waves were asked for
    (`waves_per_eu`). 0 if unknown."""
    reserved_sgpr: int = 0
    """The same of scalar registers (AMD only)."""
    spills: int = 0
    """Vector and scalar registers spilled to scratch memory; on NVIDIA bytes stored."""
    scratch_bytes: int = 0
    """Per lane."""
    lds_bytes: int = 0
    """Local data share (NVIDIA: shared memory) of a workgroup, including memory allocated at the launch."""
    code_bytes: int = 0
    """Size of the machine code."""
    occupancy: int = 0
    """Waves per SIMD that fit at the same time (on NVIDIA: warps per scheduler)."""
    limited_by: str = ""
    """Resource that limits occupancy: `waves`, `registers`, `lds`, `workgroup`."""
    mfma: dict[str, int] = Field(default_factory=dict)
    """Matrix instructions in the code, by name without suffixes, such as `v_mfma_f32_32x32x16_fp8_fp8`."""
    accesses: dict[str, int] = Field(default_factory=dict)
    """Memory instructions in the code by kind and bits per lane, such as `buffer_load 128`, `ds_write 16`."""
    waits: int = 0
    """Instructions that wait for memory."""
    barriers: int = 0
    """Barriers of the workgroup."""
    constants: dict[str, str] = Field(default_factory=dict)
    """Compile-time arguments and options, where they are known (Triton)."""
    tuned: tuple[str, ...] = ()
    """The names of those that an autotuner chooses."""
    dialect: str = ""
    """`Gluon` or `Triton`, where it is known."""
    operands: tuple[str, ...] = ()
    """Types of the operands of matrix products in the source, in Triton's names, where they are known."""
    mix: tuple[dict[str, int], ...] = ()
    """Instructions by class, per depth of loops: `mix[0]` is code outside loops, `mix[1]` that of outermost loops."""

    @property
    def used(self) -> int:
        """Registers up to the last one that it uses; accumulation registers begin at a multiple of 4."""
        return -(-self.vgpr // 4) * 4 + self.agpr if self.agpr else self.vgpr

    @property
    def registers(self) -> int:
        """Registers that a wave takes."""
        return max(self.reserved_vgpr, self.used)

    @property
    def needs(self) -> tuple[int, int, int, int]:
        """What decides how many workgroups a compute unit holds: waves, registers, bytes of LDS, scalar registers."""
        return self.num_warps, self.registers, self.lds_bytes, max(self.reserved_sgpr, self.sgpr)


class Launch(Record):
    """One launch of a kernel by a submission on one case."""

    case: str
    """Name of the case."""
    kernel: str
    """Name of the kernel."""
    grid: tuple[int, int, int]
    """Workgroups in x, y and z."""
    num_warps: int
    """Waves (warps) of a workgroup."""
    num_stages: int = 0
    """Triton's `num_stages`."""
    constants: dict[str, str] = Field(default_factory=dict)
    """Compile-time arguments."""
    scalars: dict[str, str] = Field(default_factory=dict)
    """Its other numbers, such as sizes and strides."""
    code: int
    """Index of the launch's code object in the report's list."""
    autotuned: int = 0
    """Number of autotuner configurations to which this one belongs; 0 without autotuning."""


class Build(Record):
    """An extension that a submission passes to torch's builder: its device sources, and flags for their compiler."""

    name: str
    """The extension's name."""
    sources: tuple[str, ...]
    """Its CUDA or HIP sources."""
    flags: tuple[str, ...] = ()
    """Flags for the device compiler."""
    functions: tuple[str, ...] = ()
    """Functions that Python may call."""


class TorchOperation(Record):
    """An operation of torch that a submission calls on one case: on a GPU a kernel of its own."""

    case: str
    """Name of the case."""
    name: str
    """The operation, such as `sum`."""
    after: int = Field(ge=0)
    """Number of launches of the submission, on all cases, before it."""
    storages: dict[str, Annotated[Finite, Field(ge=0)]] = Field(max_length=64)
    """Bytes that it reads and writes, by storage."""
    fetches: bool = False
    """Whether it brings values of the inputs, or of what launches write, to the host."""


class Prediction(Record):
    """Prediction of the performance model for a kernel on one case. Never a measurement."""

    case: str
    """Name of the case."""
    machine: str
    """Name of the GPU."""
    time_us: Finite
    """With the launches."""
    launch_us: Finite = 0.0
    """The part of `time_us` that a profiler's kernel time does not contain; published times often leave it out."""
    floor_us: Finite
    """Roofline floor of the case on that machine."""
    limited_by: str
    """The resource that takes longest: `hbm`, `cache`, `l2`, `l1`, `lds`, `matrix`, `vector`, `latency`, `launch`."""
    breakdown_us: dict[str, Finite] = Field(default_factory=dict)
    """Time that each resource alone would take, in us."""
    words: tuple[str, ...] = ()
    """Advice to the Designer."""
    lines: tuple[SourceLine, ...] = ()
    """Where a program of the longest launch spends its time, by source line; empty unless its code was executed."""
    calibration: Literal["measured here", "published", "datasheet"] = "datasheet"
    """By what the model's constants were calibrated."""
    calibrated: str = ""
    """Device and date, or data set and date, of that calibration; empty for the datasheet's."""

    @property
    def basis(self) -> str:
        """What the model's constants rest on, in words."""
        if self.calibration == "datasheet":
            return "uncalibrated: constants of the datasheet"
        by = "times measured here" if self.calibration == "measured here" else "published times"
        return f"calibrated on {by}: {self.calibrated}"


class Figures(Record):
    """Figures derived from counts; None where a count is missing."""

    hbm_read_bytes: Finite | None = None
    """Bytes from memory into L2. On AMD an upper bound, because it includes Infinity Cache hits."""
    hbm_written_bytes: Finite | None = None
    """Bytes from L2 to memory, with the same restriction."""
    l2_hit_rate: Finite | None = None
    """Hit rate of L2: share of requests (NVIDIA: sectors)."""
    lds_conflicts_per_access: Finite | None = None
    """Extra cycles (NVIDIA: passes) by bank conflicts, per cycle (pass) without conflicts."""
    matrix_share: Finite | None = None
    """Share of matrix instructions among vector instructions (NVIDIA: among all)."""
    matrix_flops: Finite | None = None
    """Operations on the matrix units, all types together (AMD only)."""
    occupancy: Finite | None = None
    """Resident waves (warps), as a share of the capacity of the busy CUs (SMs)."""
    stalls: dict[str, Finite] = Field(default_factory=dict[str, float])
    """Stalled warps per issued instruction, by reason (NVIDIA only)."""


class Counters(Record):
    """Counts of one kernel in one call of a submission on one case."""

    case: str
    """Name of the case."""
    kernel: str
    """The kernel's name from the profiler, without arguments."""
    tool: str
    """`rocprofv3` or `ncu`."""
    dispatches: int
    """Launches of the kernel in the call."""
    counts: dict[str, Finite]
    """Counts by the tool's own names: sums over the dispatches, means for shares."""
    figures: Figures
    """Figures derived from the counts."""
