"""What the targets share whose kernels are built on this host: workers, admission, compilers."""

from collections.abc import Generator
from contextlib import contextmanager
from importlib import metadata

from kernel_scientist.compilers import build, gxx
from kernel_scientist.gpu.model import constants
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.hardware import gpu
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Language
from kernel_scientist.records.params import Params
from kernel_scientist.workers import prepared
from kernel_scientist.workers.worker_pool import WorkerPool


def require(params: Params, problem: Problem, address: Address) -> None:
    """Raise SetupError without the profile, the language's compiler, or a GPU that several processes can share."""
    problem.profile(params.profile)
    if params.language == "cpp":
        gxx.find()
    if params.language in ("hip", "cuda") and address.device != "cpu":
        build.find(gpu=True)
    if address.device != "cpu" and (mode := gpu.exclusive()):
        raise SetupError(
            f"a GPU here is in compute mode {mode}: a comparison keeps several processes on one; "
            "set it with `nvidia-smi -c DEFAULT`"
        )


@contextmanager
def workers(params: Params, problem: Problem, address: Address) -> Generator[WorkerPool]:
    """Start the workers, and have the problem admitted meanwhile. Raises SetupError if it is not."""
    with prepared.pool(params, problem, address) as pool:
        from kernel_scientist.problems import admission  # imports torch, while the pool's fork server does so as well

        admission.require(problem, params.profile)
        yield pool


def modelled_toolchain(language: Language, address: Address) -> str:
    """Return what compiles kernels for a GPU that is not here, and the model that predicts their times."""
    assert address.gpu is not None
    return f"{compiler(language)} model {address.gpu.name} {constants.of(address.gpu.name)}"


def compiler(language: Language) -> str:
    """Return what compiles a language's kernels on this host, with its version; empty if it is not known."""
    if language == "cpp":
        return gxx.version()
    if language == "triton":
        return f"Triton {metadata.version('triton')}"
    tools = hip.find() if language == "hip" else ""
    if isinstance(tools, str):
        return ""
    return (
        tools.version.replace("HIP version:", "hipcc, HIP")
        if tools.rocm
        else f"{tools.version} with headers of HIP 5.2 and what ROCm 6 added"
    )
