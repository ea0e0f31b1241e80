"""Addresses of targets: the parsed text of the parameter `target`. `campaign.target.Target` is what it opens."""

from dataclasses import dataclass
from typing import Literal

from kernel_scientist.hardware import gpu, gpus
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.names import FILE
from kernel_scientist.records.params import REMOTE_TARGETS, Params

MODEL, BOARD = "model:", "kernelbot"
NEEDED = {"cpp": "cpu", "hip": "rocm", "cuda": "cuda"}
"""The only target on which a language's kernels run."""


@dataclass(frozen=True)
class Address:
    """Which target is meant, and what is known of it before it is opened."""

    name: str
    """`cpu`, `cuda`, `rocm`, `model-mi300x`, `pool-NAME`, or `kernelbot`."""
    device: str
    """torch's name for the device of this host that kernels are built for."""
    lock: str
    """Name of the lock that every timing on it holds; empty: there is nothing to hold on this host."""
    module: str = "local"
    """The module of `campaign.targets` that opens it."""
    times: Literal["measured", "predicted", "ranked"] = "measured"
    """What a kernel's times are: measured by our evaluator, predicted by a model, or measured by a leaderboard."""
    gpu: Gpu | None = None
    """The GPU that is modelled, or that the leaderboard times kernels on; None if the device itself says it."""
    remote: str = ""
    """The work pool or host that evaluates kernels; empty: they are built on this host."""

    @property
    def by_model(self) -> bool:
        """Whether kernels are ranked by predicted times."""
        return self.times == "predicted"

    @property
    def builds_disturb(self) -> bool:
        """Whether builds on this host disturb the timings, because they share its CPU."""
        return self._times_here and self.device == "cpu"

    @property
    def confirms_here(self) -> bool:
        """Whether this host can confirm a kernel again by itself."""
        return not self.remote and self.times != "ranked"

    @property
    def why_not_paired(self) -> str:
        """Why kernels of several campaigns cannot be compared on this host; empty if they can."""
        if self._times_here or self.by_model:
            return ""
        return f"kernels of several campaigns are timed in one run on this host, and target {self.name} is elsewhere"

    @property
    def _times_here(self) -> bool:
        return self.times == "measured" and not self.remote


CPU = Address("cpu", "cpu", "cpu")


def of(params: Params) -> Address:
    """Return the address that the parameters name. Raises SetupError if there is no such target."""
    if params.target == BOARD:
        return of_board(params.kernelbot.gpu, params.language)
    return resolve(params.target, params.language)


def resolve(name: str, language: str) -> Address:
    """Return the address of a target by its text, for kernels of a language.

    `auto` is the GPU of this host, and the CPU for C++ or without a GPU. Raises SetupError if there is no such target.
    """
    if name.startswith(MODEL):
        return _modelled(name, language)
    module, _, remote = name.partition(":")
    if module in REMOTE_TARGETS:
        return Address(FILE.encode(f"{module}-{remote}"), "cpu", "", module, remote=remote)
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
    return CPU if name == "cpu" else Address(name, "cuda", gpu.lock(name))


def _present() -> str:
    if not gpu.driver_present():
        return "cpu"
    import torch

    if not torch.cuda.is_available():
        return "cpu"
    return "rocm" if torch.version.hip else "cuda"


def of_board(gpu: str, language: str) -> Address:
    """Return the address of a leaderboard's GPU, such as MI300. Raises SetupError if the model does not know it."""
    if language not in ("triton", "hip"):
        raise SetupError(f"target {BOARD!r} times triton and hip kernels, not {language}: set language")
    key = next((key for key in gpus.GPUS if key.startswith(gpu.lower().split("_")[0])), None)
    if key is None or "x8" in gpu.lower():
        raise SetupError(f"kernelbot.gpu {gpu!r}: known here are {', '.join(gpus.GPUS)} and MI300; one GPU per kernel")
    known = _of_language(f"kernelbot.gpu={gpu}", key, language)
    return Address("kernelbot", "cpu", "kernelbot", "leaderboard", "ranked", known)


def _modelled(name: str, language: str) -> Address:
    modelled = _of_language(name, name.removeprefix(MODEL), language)
    if not modelled.arch.startswith("gfx"):
        raise SetupError(
            f"target {name!r}: only code for AMD's GPUs is executed without the GPU; use target=model:mi300x, "
            f"target=cuda on an {modelled.name}, or `kernel-scientist compile --machine {modelled.name.lower()}`"
        )
    return Address(f"model-{modelled.name.lower()}", "cpu", "", "modelled", "predicted", modelled)


def _of_language(name: str, key: str, language: str) -> Gpu:
    """Return a GPU that may run kernels of a language. Raises SetupError. `name`: of the parameter, for the words."""
    found = gpus.named(key)
    if language not in ("triton", "hip"):
        raise SetupError(f"target {name!r} predicts GPU kernels (triton, hip), not {language}; use target=cpu")
    if language == "hip" and not found.arch.startswith("gfx"):
        raise SetupError(f"target {name!r}: HIP kernels are compiled for AMD's GPUs; use target=model:mi300x")
    return found
