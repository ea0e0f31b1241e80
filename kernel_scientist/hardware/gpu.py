"""The GPU at hand: which one it is, and its clocks, temperature and power as the vendor's tool tells them."""

import shutil
import subprocess

QUERIES = {
    "nvidia-smi": (
        ["--query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw", "--format=csv,noheader"],
        ("gpu", "driver", "clock_sm", "clock_memory", "temperature", "power"),
    ),
    "amd-smi": (["metric", "--clock", "--temperature", "--power", "--csv"], ()),
    "rocm-smi": (["--showclocks", "--showtemp", "--showpower", "--csv"], ()),
}


ALONE = {"exclusive_process", "exclusive_thread", "prohibited"}
"""Modes in which a GPU does not take the several processes of a comparison."""


def lock(platform: str) -> str:
    """Return the name of the lock that every timing on the first GPU that torch sees holds.

    By the number of the GPU itself: it may be the first one here and another one's third (`CUDA_VISIBLE_DEVICES`).
    """
    import torch

    number = getattr(torch.cuda.get_device_properties(0), "uuid", None)
    return f"gpu-{number}" if number else f"{platform}-0"


def exclusive() -> str:
    """Return the mode in which an NVIDIA GPU of this host takes one process only, or nothing."""
    told = _said("nvidia-smi", ["--query-gpu=compute_mode", "--format=csv,noheader"])
    modes = [line.strip() for line in told.splitlines()]
    return next((mode for mode in modes if mode.lower() in ALONE), "")


def state() -> dict[str, str]:
    """Return what the first tool that is installed says of the first GPU, raw where it has no fixed columns."""
    for tool, (arguments, names) in QUERIES.items():
        if not (told := _said(tool, arguments)):
            continue
        if not names:
            return {tool: told[:2000]}
        first = told.splitlines()[0]
        return dict(zip(names, (value.strip() for value in first.split(",")), strict=False))
    return {}


def _said(tool: str, arguments: list[str]) -> str:
    """Return what a tool says; nothing where it is not installed or does not work."""
    if shutil.which(tool) is None:
        return ""
    try:
        return subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
