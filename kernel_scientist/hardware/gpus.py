"""The table of GPUs: dense peaks at boost clock and sizes, as their makers publish them.

Sources: AMD Instinct MI300X, MI325X, MI350X and MI355X data sheets and the CDNA3 and CDNA4 architecture papers; AMD's
gpu-specs reference page (ROCm documentation); matrix peaks reproduced from the instruction tables of the matrix-core
article of the ROCm blogs (2 * M * N * K * matrix cores * clock / cycles); NVIDIA H100 and H200 SXM data sheets. The
Infinity Cache's 17.2 TB/s is AMD's peak; measured rates are lower, and calibration finds them.
"""

import re
from dataclasses import dataclass, replace

from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.records.errors import SetupError


@dataclass(frozen=True)
class Gpu(Machine):
    """A GPU. A unit is a CU or an SM; rates are for the whole device. The defaults are those of CDNA3 and CDNA4."""

    arch: str
    units: int
    clock_ghz: float
    l2_gbps: float
    l2_bytes: int = 4 << 20
    """L2 of one die, in bytes."""
    dies: int = 8
    """XCDs: workgroups go to them in turn, and each has an L2 of its own."""
    last_bytes: int = 256 << 20
    """Last-level cache on the memory's side (Infinity Cache); 0: none."""
    last_gbps: float = 17_200
    wave: int = 64
    line_bytes: int = 128
    """The smallest request of L1 to L2."""


def _peaks(fp64: float, fp32: float, half: float, fp8: float, **tf32: float) -> dict[str, float]:
    return {"fp64": fp64, "fp32": fp32, **tf32, "bf16": half, "fp16": half, "fp8": fp8, "int8": fp8}


def _hopper(name: str, memory_gbps: float, l2_mib: int) -> Gpu:
    """An SM takes 64 B per clock from L2; on an H200 9.7 to 10.3 TB/s were measured, 0.6 of that. L2 is the last level,
    and its lines are sectors of 32 B. The peaks are stated at 1.83 GHz; nvidia-smi shows 1.98 as the highest clock.

    The die has 60 MB of L2 at twelve memory controllers (chipsandcheese.com, "Nvidia's H100: Funny L2, and Tons of
    Bandwidth", 2023): an H100 has ten of them, for five stacks of memory, an H200 all twelve.
    """
    peaks = _peaks(66_900, 66_900, 989_400, 1_978_900, tf32=494_700)
    boosted = 1.98 / 1.83 * max(peaks.values())
    gpu = Gpu(name, memory_gbps, peaks, "sm_90", units=132, clock_ghz=1.83, l2_gbps=15_500, l2_bytes=l2_mib << 20)
    gpu = replace(gpu, dies=1, last_bytes=0, last_gbps=0, wave=32, line_bytes=32)
    return replace(gpu, bound_gflops=boosted, kept_bytes=gpu.l2_bytes)


_CDNA3 = _peaks(163_400, 163_400, 1_307_400, 2_614_900, tf32=653_700)
_MI350X = _peaks(72_100, 144_200, 2_306_900, 4_613_700) | {"fp4": 9_227_400}
_MI355X = _peaks(78_650, 157_300, 2_516_600, 5_033_200) | {"fp4": 10_066_400}
_CDNA4_L2 = 128 * 16 * 8
"""Bytes per clock of all dies."""
_KEPT = 256 << 20
"""The Infinity Cache: what a kernel has written may still be there when it ends. Inputs never are there before it."""
MI300X = Gpu("MI300X", 5300, _CDNA3, "gfx942", 304, 2.1, 34_400, kept_bytes=_KEPT)
GPUS = {
    "mi300x": MI300X,
    "mi325x": Gpu("MI325X", 6000, _CDNA3, "gfx942", 304, 2.1, 34_400, kept_bytes=_KEPT),
    "mi350x": Gpu("MI350X", 8000, _MI350X, "gfx950", 256, 2.2, _CDNA4_L2 * 2.2, kept_bytes=_KEPT),
    "mi355x": Gpu("MI355X", 8000, _MI355X, "gfx950", 256, 2.4, _CDNA4_L2 * 2.4, kept_bytes=_KEPT),
    "h100": _hopper("H100", 3350, 50),
    "h200": _hopper("H200", 4800, 60),
}
OTHER_PARTS = {"nvl", "pcie", "mig", "gh200", "partition"}
"""Words in names of related GPUs whose memory or number of units differs from the table's entry."""


def named(name: str) -> Gpu:
    """Return a GPU by its short name. Raises SetupError with the known ones."""
    if name.lower() not in GPUS:
        raise SetupError(f"unknown machine {name!r}; known: {', '.join(GPUS)}")
    return GPUS[name.lower()]


def detected(device_name: str) -> Gpu | None:
    """Return the GPU with a driver's name; None if it is not in the table or only related to an entry."""
    words = set(re.split(r"[^a-z0-9]+", device_name.lower()))
    if words & OTHER_PARTS:
        return None
    return next((gpu for key, gpu in GPUS.items() if key in words), None)


def of_device(device: str) -> Gpu | None:
    """Return the GPU of this host behind torch's name for a device; None for a CPU and for a GPU not in the table."""
    return None if device == "cpu" else detected(name_of(device))


def name_of(device: str) -> str:
    """Return the driver's name of a GPU of this host; for a part of one, such as an MI300X in CPX mode, it says so.

    The driver gives a partition the name of the whole GPU, but the table's rates hold for the whole.
    """
    import torch

    name, units = torch.cuda.get_device_name(device), torch.cuda.get_device_properties(device).multi_processor_count
    whole = detected(name)
    return name if whole is None or whole.units == units else f"{name}, partition of {units} units"


def chosen(machine: str, arch: str) -> Gpu:
    """Return the GPU of a name, else the first of an architecture. Raises SetupError if they are unknown or differ."""
    if machine:
        gpu = named(machine)
        if arch not in ("", gpu.arch):
            raise SetupError(f"{gpu.name} is {gpu.arch}, not {arch}: name one of the two")
        return gpu
    by_arch = {gpu.arch: gpu for gpu in reversed(GPUS.values())}
    if arch not in by_arch:
        raise SetupError(f"unknown architecture {arch!r}; known: {', '.join(sorted(by_arch))}")
    return by_arch[arch]
