"""GPU assembly of either vendor, read into code objects."""

import yaml

from kernel_scientist.gpu.isa import amdgcn, sass
from kernel_scientist.records.evaluation import CodeObject


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
