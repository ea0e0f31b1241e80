"""This CPU as Linux describes it: caches, instruction sets, vector width, cores."""

import functools
import os
import platform
from pathlib import Path

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@functools.cache
def caches() -> dict[str, int]:
    """Return data and unified caches by level in bytes, such as `{"L1": 49152, "L2": 1048576, "L3": 33554432}`.

    Empty where the system does not say (some containers).
    """
    found: dict[str, int] = {}
    for index in sorted(_CACHES.glob("index*")):
        try:
            kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            found[f"L{level}"] = int(size.removesuffix("K")) << 10  # Linux prints KiB, such as 48K
    return found


def features() -> frozenset[str]:
    """Return the processor's feature flags in the kernel's spelling (`avx512f`, `avx512_bf16`, `asimd`, ...)."""
    return frozenset(_cpuinfo().get("flags", _cpuinfo().get("Features", "")).split())


def model() -> str:
    """Return the processor's name."""
    return _cpuinfo().get("model name") or platform.processor() or platform.machine()


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0))


def vector_bytes() -> int:
    """Return the width of the widest vector register in bytes."""
    if "avx512f" in features():
        return 64
    return 32 if "avx" in features() else 16


@functools.cache
def _cpuinfo() -> dict[str, str]:
    """Return the fields of the first processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().partition("\n\n")[0].splitlines() if path.exists() else []
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
