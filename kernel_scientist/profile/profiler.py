"""Which profiler this machine has, or why there is none."""

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
"""Where CUDA's packages put what their `ncu` starts."""
PACKAGES = {"rocprofv3": "rocprofiler-sdk, part of ROCm", "ncu": "Nsight Compute, part of CUDA's toolkit"}


@dataclass(frozen=True)
class Profiler:
    """A tool and what of this machine it must see besides what workers do."""

    name: Name
    program: str
    readable: tuple[str, ...]


def find(vendor: str) -> Profiler | str:
    """Return the profiler for `rocm` or `cuda`, or a sentence that says why there is none."""
    name: Name = "rocprofv3" if vendor == "rocm" else "ncu"
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *PLACES))
    program = shutil.which(name, path=path)
    if program is None:
        return f"no {name}: it is neither on PATH nor in {' or '.join(PLACES)}; install {PACKAGES[name]}"
    if name == "ncu" and _admins_only():
        return ncu.FORBIDDEN
    readable = (str(Path(program).resolve().parents[1]), *([str(NSIGHT)] if name == "ncu" else []))
    return Profiler(name, program, tuple(p for p in readable if p != "/"))


def _admins_only() -> bool:
    """Whether the driver lets administrators alone count. Who runs untrusted code here never is one: it has no
    capabilities.
    """
    with contextlib.suppress(OSError):
        return ncu.forbidden(PARAMETERS.read_text())
    return False
