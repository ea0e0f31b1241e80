"""Targets: where a kernel is timed, or for which GPU its time is predicted."""

from dataclasses import dataclass

from kernel_scientist.hardware import gpu, gpus
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.errors import SetupError

MODEL, POOL = "model:", "pool:"
NEEDED = {"cpp": "cpu", "hip": "rocm", "cuda": "cuda"}
"""The only target on which a language's kernels run."""


@dataclass(frozen=True)
class Target:
    """A device of this host, a pool of other hosts, or the model of a GPU."""

    name: str
    """`cpu`, `cuda`, `rocm`, `model-mi300x`, or `pool-NAME`."""
    device: str
    """torch's name for it."""
    lock: str
    """Name of the lock that every timing on it holds."""
    model: Gpu | None = None
    """The GPU whose times are predicted, not measured."""
    pool: str = ""
    """The work pool whose hosts evaluate kernels; empty: they are evaluated on this host."""


CPU = Target("cpu", "cpu", "cpu")


def resolve(name: str, language: str) -> Target:
    """Return the target that the parameters name, for kernels of a language.

    `auto` is the GPU of this host, and the CPU for C++ or without a GPU. Raises SetupError if there is no such target.
    """
    if name.startswith(MODEL):
        return _modelled(name, language)
    if name.startswith(POOL):
        return Target(name.replace(":", "-"), "cpu", "", pool=name.removeprefix(POOL))
    needed = NEEDED.get(language, "")
    present = "cpu" if name == "cpu" or (name == "auto" and needed == "cpu") else _present()
    if name == "auto":
        name = present
    if name == "cpu" and needed not in ("", "cpu"):
        instead = "target=model:mi300x" if language == "hip" else "`kernel-scientist compile`"
        raise SetupError(f"{language} kernels are only inspected here: they need target={needed}; use {instead}")
    if name != present:
        import torch

        raise SetupError(
            f"target {name!r}: torch {torch.__version__} finds no such GPU here; use target=cpu, or install torch's "
            f"{name} build on a machine that has one"
        )
    if needed not in ("", name):
        raise SetupError(f"target {name!r}: {language} kernels run only on target={needed}")
    return CPU if name == "cpu" else Target(name, "cuda", gpu.lock(name))


def _present() -> str:
    if not gpu.driver_present():
        return "cpu"
    import torch

    if not torch.cuda.is_available():
        return "cpu"
    return "rocm" if torch.version.hip else "cuda"


def _modelled(name: str, language: str) -> Target:
    modelled = gpus.named(name.removeprefix(MODEL))
    if language not in ("triton", "hip"):
        raise SetupError(f"target {name!r} predicts GPU kernels (triton, hip), not {language}; use target=cpu")
    if language == "hip" and not modelled.arch.startswith("gfx"):
        raise SetupError(f"target {name!r}: HIP kernels are compiled for AMD's GPUs; use target=model:mi300x")
    return Target(f"model-{modelled.name.lower()}", "cpu", "cpu", modelled)
