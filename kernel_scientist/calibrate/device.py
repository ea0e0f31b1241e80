"""The GPU at hand, as a calibration or a check of it is labelled: its name, its driver, the versions on top of it."""

from kernel_scientist.hardware import gpu as at_hand
from kernel_scientist.hardware import gpus
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError


class Device(Record):
    """One GPU of this host."""

    name: str
    """The driver's word."""
    platform: str
    """`cuda` or `rocm`."""
    platform_version: str
    torch: str
    triton: str
    state: dict[str, str]
    """Driver, clocks, temperature, power when it was asked (`machine.gpu.state`)."""

    @property
    def lock(self) -> str:
        """Name of the lock that every timing on it holds."""
        return at_hand.lock(self.platform)


def present() -> Device | None:
    """Return the first GPU that torch can use, or None."""
    import torch

    if not torch.cuda.is_available():
        return None
    import triton

    return Device(
        name=torch.cuda.get_device_name(0),
        platform="rocm" if torch.version.hip else "cuda",
        platform_version=str(torch.version.hip or torch.version.cuda),
        torch=torch.__version__,
        triton=triton.__version__,
        state=at_hand.state(),
    )


def known(device: Device, machine: str = "") -> Gpu:
    """Return what the table says of a device; `machine` names its entry where the driver's name does not tell.

    Raises SetupError for one that is not in the table, or is another than the one named.
    """
    found = gpus.detected(device.name) if device.name else None
    if machine:
        named = gpus.named(machine)
        if found is not None and found.name != named.name:
            raise SetupError(f"the GPU here, {device.name!r}, is {found.name}, not {named.name}")
        return named
    if found is None:
        raise SetupError(
            f"the GPU here, {device.name!r}, is not in the table of machines ({', '.join(gpus.GPUS)}); "
            "name the one that it is with --machine, or add it to kernel_scientist/hardware/gpus.py"
        )
    return found
