"""GPU assembly of either vendor, read into code objects, and stored under its digest: records only need the digest."""

from pathlib import Path

import yaml

from kernel_scientist.gpu.isa import amdgcn, sass
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import CodeObject
from kernel_scientist.records.kernel import digest


class AssemblyError(ValueError):
    """The text is not the complete assembly of GPU kernels."""


def read(text: str, num_warps: int = 0, shared_bytes: int = 0) -> list[CodeObject]:
    """Return a code object per kernel in AMD assembly (LLVM's) or in what `disassembly.of_cubin` returns.

    num_warps: waves of a workgroup; 0: as many as the launch bounds allow. shared_bytes: LDS (shared memory) that is
    allocated at the launch, as Triton does (`compiled.metadata.shared`), in addition to the code's own. Raises
    AssemblyError for any other text.
    """
    if num_warps < 0 or shared_bytes < 0:
        raise AssemblyError(f"num_warps {num_warps} and shared_bytes {shared_bytes} must not be negative")
    reader = sass.read if text.lstrip().startswith(sass.MARK) else amdgcn.read
    try:
        return reader(text, num_warps, shared_bytes)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise AssemblyError(f"the assembly cannot be read: {error}") from error


def put(text: str) -> str:
    """Store assembly; return its digest."""
    name = digest(text)
    path = _path(name)
    if not path.exists():
        environment.keep(path, text)
    return name


def get(name: str) -> str | None:
    """Return assembly by its digest; None if it is not stored."""
    path = _path(name)
    return path.read_text() if path.exists() else None


def _path(name: str) -> Path:
    return environment.cache_folder() / "assembly" / f"{name}.s"
