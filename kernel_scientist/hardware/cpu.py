"""This CPU: caches, vector width, cores, as the system tells them."""

import functools
import os
import platform
from pathlib import Path

_SYSFS = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@functools.cache
def caches() -> dict[str, int]:
    """Return data and unified caches by level in bytes, such as `{"L1": 49152, "L2": 1048576, "L3": 33554432}`.

    Empty where the system does not say (some containers).
    """
    found: dict[str, int] = {}
    for index in sorted(_SYSFS.glob("index*")):
        try:
            kind, level, size = ((index / f).read_text().strip() for f in ("type", "level", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            found[f"L{level}"] = int(size[:-1]) * _UNITS[size[-1]] if size[-1] in _UNITS else int(size)
    return found


@functools.cache
def features() -> frozenset[str]:
    """Return the processor's feature flags in the kernel's spelling (`avx512f`, `avx512_bf16`, `asimd`, ...)."""
    for line in _cpuinfo():
        if line.startswith(("flags", "Features")):
            return frozenset(line.split(":", 1)[1].split())
    return frozenset()


@functools.cache
def model() -> str:
    """Return the processor's name."""
    names = (line.split(":", 1)[1].strip() for line in _cpuinfo() if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0))


def vector_bytes() -> int:
    """Return the width of the widest vector register in bytes."""
    if "avx512f" in features():
        return 64
    return 32 if "avx2" in features() or "avx" in features() else 16


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
