"""The GPU of this host: its lock, its compute mode, and the state that the vendor's tool reports."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

NODES = ("kfd", "nvidia*", "nvhost*", "nvmap", "dxg")
"""Names in /dev of the drivers of AMD's and NVIDIA's GPUs; `dxg` is that of Windows' Linux."""
NVIDIA_STATE = ("gpu", "driver", "clock_sm", "clock_memory", "temperature", "power")
NVIDIA_FIELDS = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw"
"""nvidia-smi's names for `NVIDIA_STATE`."""
KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
"""Where AMD's driver lists CPUs and GPUs."""
AMD_STATE = {
    "amd-smi": ("metric", "--clock", "--temperature", "--power", "--csv"),
    "rocm-smi": ("--showclocks", "--showtemp", "--showpower", "--csv"),
}
SINGLE_PROCESS_MODES = {"exclusive_process", "exclusive_thread", "prohibited"}
"""Compute modes in which a GPU does not accept the several processes of a comparison."""


def driver_present() -> bool:
    """Whether a GPU's driver is loaded. If not, torch finds no GPU, and need not be imported to ask it."""
    return any(any(Path("/dev").glob(name)) for name in NODES)


def numbers() -> list[str]:
    """Return the numbers of this host's GPUs that this process may use, without importing torch; empty: none."""
    for variable in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        if (visible := os.environ.get(variable)) is not None:
            return [number.strip() for number in visible.split(",") if number.strip()]
    nodes = KFD_NODES.glob("*/gpu_id")
    amd = sum(node.read_text().strip() != "0" for node in nodes)  # 0: a CPU
    return [str(number) for number in range(amd or len(_nvidia_smi("index")))]


def only_first(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that show a process only the first GPU that torch finds in `environment`.

    ROCm reads both variables and prefers the second, which is therefore set only where it is set already.
    """
    shown = {"CUDA_VISIBLE_DEVICES": "0", **environment}
    names = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
    return {name: shown[name].split(",")[0] for name in names if name in shown}


def own_id() -> str:
    """Return the id (UUID) of torch's first GPU; empty if torch does not know it."""
    import torch

    return str(getattr(torch.cuda.get_device_properties(0), "uuid", ""))


def lock(platform: str) -> str:
    """Return the name of the lock that every timing on torch's first GPU holds.

    It contains the GPU's own id, because `CUDA_VISIBLE_DEVICES` changes the number per process.
    """
    return f"gpu-{number}" if (number := own_id()) else f"{platform}-0"


def exclusive() -> str:
    """Return the compute mode of torch's first GPU if it accepts one process only; else an empty text."""
    mode = "".join(_of_own("compute_mode"))
    return mode if mode.lower() in SINGLE_PROCESS_MODES else ""


def state() -> dict[str, str]:
    """Return driver, clocks, temperature and power of torch's first GPU; AMD's tools' output is kept as text."""
    if values := _of_own(NVIDIA_FIELDS):
        return dict(zip(NVIDIA_STATE, values, strict=False))
    reports = ((tool, _output(tool, *arguments)) for tool, arguments in AMD_STATE.items())
    return next(({tool: text[:2000]} for tool, text in reports if text), {})


def _of_own(fields: str) -> list[str]:
    """Return nvidia-smi's values for torch's first GPU; empty without NVIDIA's driver."""
    rows = [[value.strip() for value in row.split(",")] for row in _nvidia_smi(f"uuid,{fields}")]
    own = next((row for row in rows if own_id() in row[0]), None) if len(rows) > 1 else next(iter(rows), None)
    return own[1:] if own else []


def _nvidia_smi(fields: str) -> list[str]:
    rows = _output("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader").splitlines()
    return [row.strip() for row in rows]


def _output(tool: str, *arguments: str) -> str:
    """Return a tool's output; an empty text if it is not installed or fails."""
    if shutil.which(tool) is None:
        return ""
    try:
        return subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
