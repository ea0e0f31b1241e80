"""GPUs that are known: peaks and sizes, dense, at boost clock, as their makers publish them.

Sources: AMD Instinct MI300X, MI325X, MI350X and MI355X data sheets and the CDNA3 and CDNA4 architecture papers; AMD's
gpu-specs reference page (ROCm documentation); matrix peaks reproduced from the instruction tables of the matrix-core
article of the ROCm blogs (2 * M * N * K * matrix cores * clock / cycles); NVIDIA H100 and H200 data sheets. The
Infinity Cache's 17.2 TB/s is AMD's peak; measured figures are lower, which is what calibration is for.
"""

import re
from dataclasses import dataclass

from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.records.errors import SetupError


@dataclass(frozen=True)
class Gpu(Machine):
    """A GPU. A unit is a CU or an SM; rates are for the whole device unless they say otherwise."""

    arch: str = ""
    units: int = 0
    clock_ghz: float = 0.0
    dies: int = 1
    """XCDs: workgroups go to them in turn, and each has an L2 of its own."""
    l2_bytes: int = 0
    """Of one die."""
    l2_gbps: float = 0.0
    last_bytes: int = 0
    """Last-level cache on the memory's side (Infinity Cache); 0: none."""
    last_gbps: float = 0.0
    wave: int = 64
    line_bytes: int = 128
    """What L1 asks L2 for at the least."""


def _cdna3(name: str, memory_gbps: float) -> Gpu:
    peaks = {"fp64": 163_400.0, "fp32": 163_400.0, "tf32": 653_700.0, "bf16": 1_307_400.0, "fp16": 1_307_400.0}
    return Gpu(
        name,
        memory_gbps,
        {**peaks, "fp8": 2_614_900.0, "int8": 2_614_900.0},
        f"AMD Instinct {name} data sheet",
        arch="gfx942",
        units=304,
        clock_ghz=2.1,
        dies=8,
        l2_bytes=4 << 20,
        l2_gbps=34_400,
        last_bytes=256 << 20,
        last_gbps=17_200,
    )


def _cdna4(name: str, clock_ghz: float, fp32: float, half: float, fp8: float) -> Gpu:
    return Gpu(
        name,
        8000,
        {"fp64": fp32 / 2, "fp32": fp32, "bf16": half, "fp16": half, "fp8": fp8, "int8": fp8, "fp4": 2 * fp8},
        f"AMD Instinct {name} data sheet",
        arch="gfx950",
        units=256,
        clock_ghz=clock_ghz,
        dies=8,
        l2_bytes=4 << 20,
        l2_gbps=128 * 16 * 8 * clock_ghz,
        last_bytes=256 << 20,
        last_gbps=17_200,
    )


def _hopper(name: str, memory_gbps: float) -> Gpu:
    peaks = {"fp64": 66_900.0, "fp32": 66_900.0, "tf32": 494_700.0, "bf16": 989_400.0, "fp16": 989_400.0}
    return Gpu(
        name,
        memory_gbps,
        {**peaks, "fp8": 1_978_900.0, "int8": 1_978_900.0},
        f"NVIDIA {name} SXM data sheet",
        arch="sm_90",
        units=132,
        clock_ghz=1.83,
        l2_bytes=50 << 20,
        l2_gbps=9_400,  # 80 slices of 64 B per clock
        wave=32,
        line_bytes=32,  # a sector: what L1 asks L2 for
    )


MI300X = _cdna3("MI300X", 5300)
GPUS: dict[str, Gpu] = {
    "mi300x": MI300X,
    "mi325x": _cdna3("MI325X", 6000),
    "mi350x": _cdna4("MI350X", 2.2, 144_200, 2_306_900, 4_613_700),
    "mi355x": _cdna4("MI355X", 2.4, 157_300, 2_516_600, 5_033_200),
    "h100": _hopper("H100", 3350),
    "h200": _hopper("H200", 4800),
}


OTHER_PARTS = {"nvl", "pcie", "mig", "gh200"}
"""Words of parts that share a name with one of these, and not its memory or its units."""


def named(name: str) -> Gpu:
    """Return a GPU by its short name. Raises SetupError with the known ones."""
    if name.lower() not in GPUS:
        raise SetupError(f"unknown machine {name!r}; known: {', '.join(GPUS)}")
    return GPUS[name.lower()]


def detected(device_name: str) -> Gpu | None:
    """Return the GPU that a driver's name for a device means; None for one that is not in the table, or only akin."""
    words = set(re.split(r"[^a-z0-9]+", device_name.lower()))
    if words & OTHER_PARTS:
        return None
    return next((gpu for key, gpu in GPUS.items() if key in words), None)


def here(device: str) -> Gpu | None:
    """Return the GPU of this host behind torch's name for a device; None for a CPU, and for one in no table."""
    if device == "cpu":
        return None
    import torch

    return detected(torch.cuda.get_device_name(device))


def of_arch(arch: str) -> Gpu:
    """Return the best-known GPU of an architecture. Raises SetupError with the known ones."""
    for gpu in GPUS.values():
        if gpu.arch == arch:
            return gpu
    known = ", ".join(sorted({gpu.arch for gpu in GPUS.values()}))
    raise SetupError(f"unknown architecture {arch!r}; known: {known}")


def require(gpu: Gpu, arch: str) -> None:
    """Raise SetupError where a GPU is not of an architecture that was named besides."""
    if arch and gpu.arch != arch:
        raise SetupError(f"{gpu.name} is {gpu.arch}, not {arch}: name one of the two")
