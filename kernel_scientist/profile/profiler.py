"""The profiler of this machine, or the reason why there is none."""

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernel_scientist.profile import ncu

Name = Literal["rocprofv3", "ncu"]
PLACES = ("/opt/rocm/bin", "/usr/local/cuda/bin")
PARAMETERS = Path("/proc/driver/nvidia/params")
NSIGHT = Path("/opt/nvidia/nsight-compute")
"""Folder in which CUDA's packages install the programs that their `ncu` starts."""
PACKAGES = {"rocprofv3": "rocprofiler-sdk, part of ROCm", "ncu": "Nsight Compute, part of CUDA's toolkit"}


@dataclass(frozen=True)
class Profiler:
    """A tool, and the files that it reads besides those of workers."""

    name: Name
    program: str
    readable: tuple[str, ...]


def find(vendor: str) -> Profiler | str:
    """Return the profiler for `rocm` or `cuda`, or the reason (a sentence) why there is none."""
    name: Name = "rocprofv3" if vendor == "rocm" else "ncu"
    program = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *PLACES)))
    if program is None:
        return f"no {name}: it is neither on PATH nor in {' or '.join(PLACES)}; install {PACKAGES[name]}"
    if name == "ncu":
        with contextlib.suppress(OSError):
            if ncu.forbidden(PARAMETERS.read_text()):  # also for root: the target process has no capabilities
                return ncu.FORBIDDEN
    readable = (str(Path(program).resolve().parents[1]), *([str(NSIGHT)] if name == "ncu" else []))
    return Profiler(name, program, tuple(path for path in readable if path != "/"))
