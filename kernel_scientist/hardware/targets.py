"""Where a kernel is timed, or its time predicted."""

from dataclasses import dataclass

from kernel_scientist.hardware import gpu, gpus
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.errors import SetupError

MODEL = "model:"


@dataclass(frozen=True)
class Target:
    """A device of this host, or the model of one that is not here."""

    name: str
    """`cpu`, `cuda`, `rocm`, or `model-mi300x`."""
    device: str
    """torch's name for it."""
    lock: str
    """Name of the lock that every timing on it holds."""
    model: Gpu | None = None
    """The GPU whose times are predicted, not measured."""


CPU = Target("cpu", "cpu", "cpu")
NEEDED = {"hip": "rocm", "cuda": "cuda"}
"""The only target that a language's kernels run on."""


def resolve(name: str, language: str) -> Target:
    """Return the target that the parameters name, for kernels of a language.

    `auto` is the GPU that is there, and the CPU for C++ or without one. Raises SetupError when the target is not there.
    """
    if name.startswith(MODEL):
        return _modelled(name, language)
    needed = NEEDED.get(language)
    if needed and name == "cpu":
        raise _unrunnable(language, needed)
    if name == "cpu" or (name == "auto" and language == "cpp"):
        return CPU
    import torch

    present = ("rocm" if torch.version.hip else "cuda") if torch.cuda.is_available() else None
    if needed and name == "auto" and present != needed:
        raise _unrunnable(language, needed)
    if name == "auto":
        return Target(present, "cuda", gpu.lock(present)) if present else CPU
    if name != present:
        raise SetupError(
            f"target {name!r}: torch {torch.__version__} finds no such GPU here; use target=cpu, or install torch's "
            f"{name} build on a machine that has one"
        )
    if language == "cpp":
        raise SetupError(f"target {name!r}: C++ kernels run on the CPU; use target=cpu")
    if needed not in (None, name):
        raise SetupError(f"target {name!r}: {language} kernels run on target={needed} alone")
    return Target(name, "cuda", gpu.lock(name))


def _unrunnable(language: str, needed: str) -> SetupError:
    instead = "target=model:mi300x" if language == "hip" else "`kernel-scientist compile`"
    return SetupError(f"{language} kernels are only inspected here: they need target={needed}; use {instead}")


def _modelled(name: str, language: str) -> Target:
    modelled = gpus.named(name.removeprefix(MODEL))
    if language not in ("triton", "hip"):
        raise SetupError(f"target {name!r} predicts GPU kernels (triton, hip), not {language}; use target=cpu")
    if language == "hip" and not modelled.arch.startswith("gfx"):
        raise SetupError(f"target {name!r}: HIP kernels are compiled for AMD's GPUs; use target=model:mi300x")
    return Target(f"model-{modelled.name.lower()}", "cpu", "cpu", modelled)
