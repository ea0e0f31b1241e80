"""Targets: where a kernel is timed, or for which GPU its time is predicted."""

from dataclasses import dataclass

from kernel_scientist.hardware import gpu, gpus
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.names import FILE

MODEL, POOL, BOARD = "model:", "pool:", "kernelbot"
NEEDED = {"cpp": "cpu", "hip": "rocm", "cuda": "cuda"}
"""The only target on which a language's kernels run."""


@dataclass(frozen=True)
class Target:
    """A device of this host, a pool of other hosts, or the model of a GPU."""

    name: str
    """`cpu`, `cuda`, `rocm`, `model-mi300x`, `pool-NAME`, or `kernelbot`."""
    device: str
    """torch's name for it."""
    lock: str
    """Name of the lock that every timing on it holds."""
    model: Gpu | None = None
    """The GPU whose times are predicted, not measured."""
    board: bool = False
    """Whether GPU MODE's leaderboard times kernels; `model` is its GPU."""
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
        return Target(FILE.encode(name.replace(":", "-")), "cpu", "", pool=name.removeprefix(POOL))
    if name == BOARD:
        return of_board("MI300", language)
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


def of_board(gpu: str, language: str) -> Target:
    """Return the target of a leaderboard's GPU, such as MI300. Raises SetupError if the model does not know it."""
    if language not in ("triton", "hip"):
        raise SetupError(f"target {BOARD!r} times triton and hip kernels, not {language}: set language")
    key = next((key for key in gpus.GPUS if key.startswith(gpu.lower().split("_")[0])), None)
    if key is None or "x8" in gpu.lower():
        raise SetupError(f"kernelbot.gpu {gpu!r}: known here are {', '.join(gpus.GPUS)} and MI300; one GPU per kernel")
    return Target("kernelbot", "cpu", "kernelbot", _of_language(f"kernelbot.gpu={gpu}", key, language), board=True)


def _modelled(name: str, language: str) -> Target:
    modelled = _of_language(name, name.removeprefix(MODEL), language)
    if not modelled.arch.startswith("gfx"):
        raise SetupError(
            f"target {name!r}: only code for AMD's GPUs is executed without the GPU; use target=model:mi300x, "
            f"target=cuda on an {modelled.name}, or `kernel-scientist compile --machine {modelled.name.lower()}`"
        )
    return Target(f"model-{modelled.name.lower()}", "cpu", "cpu", modelled)


def _of_language(name: str, key: str, language: str) -> Gpu:
    """Return a GPU that may run kernels of a language. Raises SetupError. `name`: of the parameter, for the words."""
    found = gpus.named(key)
    if language not in ("triton", "hip"):
        raise SetupError(f"target {name!r} predicts GPU kernels (triton, hip), not {language}; use target=cpu")
    if language == "hip" and not found.arch.startswith("gfx"):
        raise SetupError(f"target {name!r}: HIP kernels are compiled for AMD's GPUs; use target=model:mi300x")
    return found
