"""Peaks and bandwidths that were measured on this machine: what kernels can reach, beside floors that none can beat.

`evaluation.timing.measured_peaks` measures them once a day; this is the record and where it is kept.
"""

import contextlib
import socket
import time
from pathlib import Path

from pydantic import ValidationError

from kernel_scientist.hardware import cpu
from kernel_scientist.records import environment
from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.kernel import digest

VALID_S = 24 * 3600


class MeasuredPeaks(Record):
    """The best rates that microkernels of ours had on this machine, with all cores."""

    machine: str
    """The processor's name."""
    cores: int
    gflops: dict[str, Finite]
    """GFLOP/s (or GOP/s) by type: fp32, bf16, int8. A multiplication with its addition is two. A type without a unit
    that the microkernels know is missing."""
    units: dict[str, str]
    """The instruction that had the rate, by type."""
    memory_gbps: Finite
    """Reading of more memory than the caches hold, in GB/s."""
    copy_gbps: Finite
    """Copying of such memory: bytes read and bytes written."""
    cache_gbps: Finite
    """Reading of 1 MiB per core again and again."""
    clock_ghz: Finite
    """Clock of a core that computes alone."""
    date: str
    """When it was measured, in UTC."""
    load: str
    """Load average then."""
    others_percent: str
    """Share of the machine's CPU time that other processes used meanwhile."""


def kept(model: str = "", cores: int = 0) -> MeasuredPeaks | None:
    """Return what was last measured on this machine, on any day; None if nothing, or for another processor than named.

    `cores`: how many must have been used, if not 0.
    """
    with contextlib.suppress(OSError, ValidationError):
        found = MeasuredPeaks.model_validate_json(file().read_text())
        if model in ("", found.machine) and cores in (0, found.cores):
            return found
    return None


def is_due() -> bool:
    """Whether nothing was measured in the last day."""
    return kept() is None or time.time() - file().stat().st_mtime > VALID_S


def file() -> Path:
    """Return the file of this machine's measurement, beside its noise."""
    key = digest("\0".join((socket.gethostname(), cpu.model(), str(cpu.cores()))))[:32]
    return environment.host_folder() / "noise" / f"peaks-{key}.json"


def described(peaks: MeasuredPeaks | None) -> list[str]:
    """Return what was measured, in one line for people and prompts."""
    if peaks is None:
        return ["peaks and bandwidths of this machine: not measured"]
    rates = ", ".join(f"{name} {_tera(rate)} ({peaks.units[name]})" for name, rate in peaks.gflops.items())
    return [
        f"measured here with all {peaks.cores} logical CPUs, {peaks.date} (load {peaks.load}, other processes used "
        f"{peaks.others_percent or '?'} % of the CPU time): {rates}; memory {peaks.memory_gbps:.3g} GB/s read, "
        f"{peaks.copy_gbps:.3g} GB/s copied (bytes read and written); caches {peaks.cache_gbps:.3g} GB/s read (1 MiB "
        f"for each CPU); clock {peaks.clock_ghz:.2f} GHz. "
        "A kernel can reach these; a machine without that load may be faster"
    ]


def _tera(gflops: float) -> str:
    return f"{gflops / 1000:.2f} TFLOP/s" if gflops >= 1000 else f"{gflops:.0f} GFLOP/s"
