"""The machine that first light runs on: its system, its driver, its tools, the versions of its packages.

Asks no GPU's runtime and imports no torch, so that it can be asked first.
"""

import platform
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.parts import bounded
from kernel_scientist.hardware.gpu import NVIDIA_FIELDS
from kernel_scientist.sandbox import landlock

SMI_S = 20
"""Limit of nvidia-smi, in seconds: without its daemon it starts the driver first."""
FIELDS = f"{NVIDIA_FIELDS},clocks.max.sm,clocks.max.mem,persistence_mode,compute_mode"
PACKAGES = ("torch", "triton", "numpy", "pydantic", "kernelguard")
TOOLS = ("gcc", "g++", "nvcc", "ncu", "hipcc", "rocprofv3", "bwrap")
PLACES = (Path("/usr/local/cuda/bin"), Path("/opt/rocm/bin"))
DRIVER, DEVICES = Path("/proc/driver"), Path("/dev")


def name() -> str:
    """Return the name of NVIDIA's first GPU; empty without its driver."""
    return str(nvidia().get("name", ""))


def nvidia() -> dict[str, str]:
    """Return what nvidia-smi says about the first GPU; nothing without it."""
    if shutil.which("nvidia-smi") is None:
        return {}
    done = bounded(["nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader"], SMI_S)
    lines = done.output.strip().splitlines()
    if done.status != 0 or not lines:
        return {"error": done.output.strip()[-500:] or f"nvidia-smi: exit status {done.status}"}
    return dict(zip(FIELDS.split(","), (value.strip() for value in lines[0].split(",")), strict=False))


def facts() -> dict[str, Any]:
    """Return what the figures of all steps depend on."""
    return {
        "system": platform.release(),
        "python": platform.python_version(),
        "packages": {package: _version(package) for package in PACKAGES},
        "tools": {tool: _tool(tool) for tool in TOOLS},
        "nvidia": nvidia(),
        "landlock_version": landlock.version(),
        "proc_driver": sorted(path.name for path in DRIVER.glob("*")),
        "devices": sorted(str(path.relative_to(DEVICES)) for path in DEVICES.glob("nvidia*")),
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _tool(tool: str) -> str:
    found = (shutil.which(tool), *(shutil.which(str(place / tool)) for place in PLACES))
    return next((path for path in found if path), "")
