"""The facts of a kernel's report on which the cards in `knowledge/symptoms.yaml` set their conditions."""

import typing

from kernel_scientist.records.base import Finite, Record

Value = bool | int | float | str


class ReportFacts(Record):
    """What is known of a kernel; None where it is not known, or does not exist on its target.

    A GPU kernel's resources are those of its main code object: the one with most instructions in loops.
    """

    kernel: str | None = None
    """Name of the main GPU kernel."""
    spilled_registers: int | None = None
    """Registers that the compiler spilled, the most of all code objects (NVIDIA: bytes)."""
    scratch_bytes: int | None = None
    """Scratch memory per lane, the most of all code objects."""
    workgroups_per_unit: int | None = None
    """Workgroups of the main kernel that a compute unit holds at a time."""
    waves_per_simd: int | None = None
    """Its waves per SIMD."""
    occupancy_limit: str | None = None
    """What allows no more workgroups: `waves`, `registers`, `lds`, `scalars`, `workgroup`, several joined by `and`."""
    registers: int | None = None
    """Registers per lane that a wave takes."""
    registers_for_one_more: int | None = None
    """The most with which one more workgroup would fit."""
    lds_bytes: int | None = None
    """LDS of a workgroup."""
    lds_for_one_more_bytes: int | None = None
    """The most with which one more workgroup would fit."""
    matrix_instructions: int | None = None
    """Matrix instructions in the code, of all code objects."""
    load_bits: int | None = None
    """Bits per lane of the narrowest loads from memory of which the loops have several."""
    load_times: Finite | None = None
    """By how many times fewer loads would do if each had 128 bits."""
    lds_bits: int | None = None
    """Bits per lane of the narrowest accesses to LDS of which the loops have several."""
    cases: int | None = None
    """Timed cases whose launches are known."""
    units: int | None = None
    """Compute units of the GPU."""
    idle_cases: int | None = None
    """Cases whose largest launch has fewer workgroups than the GPU has units."""
    fewest_workgroups: int | None = None
    """Workgroups of the largest launch, in the case that has fewest."""
    idle_gain: Finite | None = None
    """Gain in percent, geometric mean over all cases, if in these cases every unit took an equal part."""
    tail_cases: int | None = None
    """Cases in which the last round of workgroups leaves units idle for more than a tenth of the time."""
    tail_gain: Finite | None = None
    """Gain in percent, geometric mean over all cases, if no unit idled in these."""
    predicted_cases: int | None = None
    """Cases with a predicted time."""
    limit: str | None = None
    """The largest predicted limit in most of them: `hbm`, `l2`, `latency`, ..."""
    limit_cases: int | None = None
    """How many they are."""
    launch_cases: int | None = None
    """Cases in which launches are a quarter of the predicted time or more."""
    launch_percent: Finite | None = None
    """The largest of these shares."""
    over_floor: Finite | None = None
    """Time over roofline floor, geometric mean of the cases in which arithmetic sets the floor (GPU)."""
    floor_gain: Finite | None = None
    """The same as a gain in percent."""
    arithmetic_cases: int | None = None
    """Timed cases in which arithmetic sets the roofline floor."""
    operand_type: str | None = None
    """Type in which the problem's arithmetic is counted: `fp8`, `bf16`, `fp32`, ..."""
    lds_conflicts: Finite | None = None
    """Counter: cycles lost to bank conflicts per cycle of LDS accesses."""
    moved_over_least: Finite | None = None
    """Counter: bytes moved between memory and L2 over those that must be moved, all cases together."""
    hot_scalar: bool | None = None
    """CPU: whether the hot loop computes one element at a time."""
    hot_bytes: int | None = None
    """CPU: bytes of the widest operands on which the hot loop computes."""
    machine_bytes: int | None = None
    """CPU: bytes of its vector registers."""
    width_times: Finite | None = None
    """CPU: the second over the first."""
    hot_spills: int | None = None
    """CPU: moves of vector registers to and from the stack in the hot loop."""
    hot_sums: int | None = None
    """CPU: registers in which the hot loop adds up from one iteration to the next."""
    sum_times: Finite | None = None
    """CPU: sums that keep the units of a core busy, for each thread, over those that there are."""
    hot_gathers: int | None = None
    """CPU: gathers in the hot loop."""
    hot_calls: int | None = None
    """CPU: calls of functions in the hot loop."""
    tile_products: int | None = None
    """CPU: instructions of the matrix unit in the code."""
    has_amx: bool | None = None
    """CPU: whether it has AMX for bf16."""
    amx_times: Finite | None = None
    """CPU: measured rate of bf16 on AMX over that of fp32 on vectors."""

    def known(self) -> dict[str, Value]:
        """Return the facts that are known, by name."""
        return {name: value for name in KINDS if (value := getattr(self, name)) is not None}


def _kind(annotation: object) -> type:
    """Return the plain type of a fact: bool, str, int or float."""
    first = next(part for part in typing.get_args(annotation) if part is not type(None))
    return first if isinstance(first, type) else float


KINDS: dict[str, type] = {name: _kind(field.annotation) for name, field in ReportFacts.model_fields.items()}
"""Type of each fact."""
