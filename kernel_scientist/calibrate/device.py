"""The GPU of this host, as a calibration records it."""

from kernel_scientist.hardware import gpu as host_gpu
from kernel_scientist.hardware import gpus
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError


class Device(Record):
    """One GPU of this host."""

    name: str
    """As the driver reports it."""
    platform: str
    """`cuda` or `rocm`."""
    platform_version: str
    torch: str
    triton: str
    state: dict[str, str]
    """Driver, clocks, temperature, power at the beginning (`hardware.gpu.state`)."""

    @property
    def lock(self) -> str:
        """Name of the lock that every timing on it holds."""
        return host_gpu.lock(self.platform)


def present() -> Device | None:
    """Return the first GPU that torch can use, or None."""
    import torch

    if not torch.cuda.is_available():
        return None
    import triton

    return Device(
        name=gpus.name_of("cuda"),
        platform="rocm" if torch.version.hip else "cuda",
        platform_version=str(torch.version.hip or torch.version.cuda),
        torch=torch.__version__,
        triton=triton.__version__,
        state=host_gpu.state(),
    )


def known(device: Device, machine: str = "") -> Gpu:
    """Return a device's entry in the table of GPUs; `machine` names it if the driver's name does not identify it.

    Raises SetupError if the table has no such entry, or the driver's name identifies another one.
    """
    found = gpus.detected(device.name)
    if machine and found in (None, gpus.named(machine)):
        return gpus.named(machine)
    if found is None:
        raise SetupError(
            f"the GPU here, {device.name!r}, is not in the table of machines ({', '.join(gpus.GPUS)}); "
            "name its entry with --machine, or add it to kernel_scientist/hardware/gpus.py"
        )
    if machine:
        raise SetupError(f"the GPU here, {device.name!r}, is {found.name}, not {gpus.named(machine).name}")
    return found
