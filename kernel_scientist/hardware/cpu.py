"""This CPU as Linux describes it: caches, instruction sets, vector width, cores."""

import contextlib
import ctypes
import functools
import os
import platform
import re
from pathlib import Path

from kernel_scientist.hardware import cpu_models

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
_MAX_CLOCK = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
_DECISIVE = re.compile(r"avx|amx|fma$|f16c|bmi2|gfni|vaes|vpclmul|cldemote|movdir64b")
_DECISIVE_ARM = re.compile(r"asimd|sve|sme|i8mm|bf16|fphp|fcma|f8")
"""Features that decide how a kernel is written, in the kernel's spelling; others are for systems and cryptography."""
PR_SVE_GET_VL, PR_SME_GET_VL, VL_BYTES = 51, 64, 0xFFFF


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


def instruction_sets(all_features: frozenset[str] | None = None) -> list[str]:
    """Return, sorted, the features that decide how a kernel is written (those of this processor by default)."""
    known = features() if all_features is None else all_features
    return sorted(filter((_DECISIVE_ARM if "asimd" in known else _DECISIVE).match, known))


def model() -> str:
    """Return the processor's name."""
    return _cpuinfo().get("model name") or platform.processor() or platform.machine()


def generation() -> str:
    """Return the processor's generation, such as `Emerald Rapids`; empty if it is not known here."""
    return cpu_models.generation(_cpuinfo())


def clock() -> str:
    """Return what the system says of the clock: the highest, else the one at the moment; empty if nothing."""
    with contextlib.suppress(OSError, ValueError):
        return f"{int(_MAX_CLOCK.read_text()) / 1e6:.2f} GHz at most"
    mhz = _cpuinfo().get("cpu MHz")
    return f"{float(mhz) / 1000:.2f} GHz as the system reports it" if mhz else ""


def cores() -> int:
    """Return the number of logical CPUs this process may use; `physical_cores` may be fewer."""
    return len(os.sched_getaffinity(0))


def physical_cores() -> int:
    """Return on how many cores those CPUs lie: hyperthreads of one core share its units, L1 and L2."""
    return len({_siblings(number) for number in os.sched_getaffinity(0)})


def shared_caches() -> frozenset[str]:
    """Return the levels of cache, such as `L3`, of which one serves several cores; empty where the system is silent."""
    found = set[str]()
    for index in _CACHES.glob("index*"):
        with contextlib.suppress(OSError):
            level, cpus = ((index / name).read_text().strip() for name in ("level", "shared_cpu_list"))
            found |= {f"L{level}"} if cpus != _siblings(0) else set()
    return frozenset(found)


def _siblings(number: int) -> str:
    """Return the logical CPUs of one core, as Linux lists them; the number itself where it does not."""
    try:
        return Path(_TOPOLOGY.format(number)).read_text().strip()
    except OSError:
        return str(number)


def scalable_bytes(kind: str) -> int:
    """Return the length of a vector of `sve` or `sme` in bytes; 0 where there is none."""
    if kind not in features():
        return 0
    length = ctypes.CDLL(None).prctl(PR_SVE_GET_VL if kind == "sve" else PR_SME_GET_VL, 0, 0, 0, 0)
    return max(length, 0) & VL_BYTES


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
