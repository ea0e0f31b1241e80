"""The GPU at hand: its name, and its clocks, temperature and power as the vendor's tool tells them."""

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


def state() -> dict[str, str]:
    """Return what the first tool that is installed says of the first GPU, raw where it has no fixed columns."""
    for tool, (arguments, names) in QUERIES.items():
        if shutil.which(tool) is None:
            continue
        try:
            done = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            continue
        if not names:
            return {tool: done.stdout[:2000]}
        first = done.stdout.splitlines()[0] if done.stdout else ""
        return dict(zip(names, (value.strip() for value in first.split(",")), strict=False))
    return {}
