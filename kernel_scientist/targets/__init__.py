"""Where a kernel is timed."""

from dataclasses import dataclass

from kernel_scientist.errors import SetupError


@dataclass(frozen=True)
class Target:
    """A device of this host."""

    name: str
    """`cpu`, `cuda` or `rocm`."""
    device: str
    """torch's name for it."""
    lock: str
    """Name of the lock that every timing on it holds."""


CPU = Target("cpu", "cpu", "cpu")


def resolve(name: str, language: str) -> Target:
    """Return the target that the parameters name; `auto` is the GPU that is there, and the CPU for C++ or without one.

    Raises SetupError when the target is not there.
    """
    if name == "cpu" or (name == "auto" and language == "cpp"):
        return CPU
    import torch

    present = ("rocm" if torch.version.hip else "cuda") if torch.cuda.is_available() else None
    if name == "auto":
        return Target(present, "cuda", f"{present}-0") if present else CPU
    if name != present:
        raise SetupError(
            f"target {name!r}: torch {torch.__version__} finds no such GPU here; use target=cpu, or install torch's "
            f"{name} build on a machine that has one"
        )
    if language == "cpp":
        raise SetupError(f"target {name!r}: C++ kernels run on the CPU; use target=cpu")
    return Target(name, "cuda", f"{name}-0")
