"""Disassembles an NVIDIA binary: cuobjdump's resource usage of each kernel, then nvdisasm's code.

The tools come with Triton, or with CUDA if it is installed. The binary comes from untrusted source, so they run
confined.
"""

import functools
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from kernel_scientist.records.errors import SetupError
from kernel_scientist.sandbox import confine

TEXT_BYTES = 64 << 20


@functools.cache
def tool(name: str) -> str:
    """Return the path of `cuobjdump` or `nvdisasm`. Raises SetupError if it is missing."""
    triton = find_spec("triton")  # not imported: it takes a second
    place = Path(triton.origin).parent / "backends/nvidia/bin" / name if triton and triton.origin else None
    if place is not None and place.exists():
        return str(place)
    found = shutil.which(name)
    if found is None:
        raise SetupError(f"no {name}: install CUDA's binary utilities, or triton, which brings it along")
    return found


def of_cubin(cubin: bytes, timeout_s: float = 60, confined: bool = False) -> str:
    """Return the text for `assembly.read`. Raises SetupError without the tools, ValueError if they refuse the binary.

    `confined`: the caller is confined already, so the tools are too.
    """
    programs = [tool("cuobjdump"), "-res-usage", "kernel.cubin"], [tool("nvdisasm"), "-c", "kernel.cubin"]
    with tempfile.TemporaryDirectory(prefix="disassembly-") as name, ThreadPoolExecutor(len(programs)) as both:
        folders = [Path(name) / Path(program[0]).name for program in programs]
        for folder in folders:
            folder.mkdir()
            (folder / "kernel.cubin").write_bytes(cubin)
        pairs = zip(programs, folders, strict=True)
        texts = [both.submit(_run, program, folder, timeout_s, confined) for program, folder in pairs]
        return "".join(text.result() for text in texts)


def _run(program: list[str], folder: Path, timeout_s: float, confined: bool) -> str:
    command = program if confined else confine.command(program, folder)
    status, text = confine.run(command, folder, timeout_s, log_bytes=TEXT_BYTES)
    if status != 0:
        raise ValueError(f"{Path(program[0]).name} refuses the binary: {text.strip()[:300] or f'status {status}'}")
    return text
