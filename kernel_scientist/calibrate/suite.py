"""The kernels that a GPU is calibrated on: every family at every size under every setting that fits the GPU."""

import functools
from dataclasses import dataclass
from pathlib import Path

from kernel_scientist.calibrate.families import FAMILIES, Family, Setting
from kernel_scientist.compile.source import KernelSource
from kernel_scientist.hardware import occupancy
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.kernel import Work
from kernel_scientist.sandbox import protocol

KERNELS = Path(__file__).with_name("kernels")


@dataclass(frozen=True)
class Entry:
    """One kernel under one setting on one size."""

    family: str
    case: str
    """The size's name: entries of one family and case do the same work."""
    name: str
    """Family, case and setting in one word each: unique."""
    source: str
    inputs: protocol.Header
    work: Work


def entries(gpu: Gpu) -> tuple[Entry, ...]:
    """Return the suite for a GPU. Settings whose tiles do not fit into its local memory are left out."""
    return tuple(
        Entry(
            family=family.name,
            case=family.case(sizes),
            name=f"{family.name} {family.case(sizes)} {label(setting)}",
            source=source(family, setting),
            inputs=family.inputs(sizes, gpu),
            work=family.work(sizes, gpu),
        )
        for family in FAMILIES
        for setting in family.settings
        if _lds_bytes(family, setting, gpu) <= occupancy.limits(gpu.arch).lds_workgroup
        for sizes in family.sizes
    )


def source(family: Family, setting: Setting) -> str:
    """Return a family's kernel with its tunables set."""
    return _source(family.file, tuple(setting.items()))


@functools.cache
def _source(file: str, setting: tuple[tuple[str, int], ...]) -> str:
    return KernelSource((KERNELS / f"{file}.py").read_text()).with_tunables(dict(setting)).text


def label(setting: Setting) -> str:
    """Return a setting in one word, such as `BLOCK1024-num_warps4`."""
    return "-".join(f"{name}{value}" for name, value in setting.items())


def _lds_bytes(family: Family, setting: Setting, gpu: Gpu) -> int:
    """Return what the tiles of a pipelined loop take at the most: a buffer per stage, on AMD one less."""
    if "BLOCK_K" not in setting:
        return 0
    stages = setting["num_stages"] - (1 if gpu.arch.startswith("gfx") else 0)
    tiles = (setting["BLOCK_M"] + setting["BLOCK_N"]) * setting["BLOCK_K"]
    return max(1, stages) * tiles * family.bits // 8
