"""A Triton driver for a GPU that is not present: it names the target, and launches nothing.

NVIDIA's inline assembly in code for AMD's GPUs is refused: the compiler would end the process because of it.

Runs in untrusted processes: imports the standard library, torch and triton only.
"""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from triton.backends import backends
from triton.backends.amd.compiler import HIPBackend
from triton.backends.compiler import GPUTarget

from kernel_scientist.gpu.fake.device import saying
from kernel_scientist.gpu.fake.facts import Facts

ASSEMBLY = re.compile(r'elementwise_inline_asm "(?P<text>[^"]*)"[^\n]*?constraints = "(?P<constraints>[^"]*)"')
OF_NVIDIA = frozenset("rhlfdc")
"""Constraints that name NVIDIA's registers; AMD's are v, s and a."""


def target(facts: Facts) -> GPUTarget:
    """Return what Triton compiles for."""
    if facts.amd:
        return GPUTarget("hip", facts.arch, facts.wave)
    return GPUTarget("cuda", int(facts.arch.removeprefix("sm_")), facts.wave)


class FakeDriver:
    """A driver object for `triton.runtime.driver.set_active`."""

    def __init__(self, facts: Facts, benchmarker: Any, device: Callable[[], int]) -> None:
        """`benchmarker(call, quantiles)` returns the predicted time of a call, for the autotuner. See `install`."""
        self.facts, self.benchmarker, self.device = facts, benchmarker, device
        properties = {
            "max_shared_mem": facts.lds_bytes,
            "max_num_regs": 65536,
            "multiprocessor_count": facts.units,
            "warpSize": facts.wave,
            "sm_clock_rate": 2_100_000,
            "mem_clock_rate": 2_600_000,
            "mem_bus_width": 8192,
            "arch": facts.arch,
            "max_threads_per_sm": 2048,
            "cooperativeLaunch": 1,
        }
        self.utils = SimpleNamespace(get_device_properties=saying(properties))

    def get_current_target(self) -> GPUTarget:
        """Return the target of compilation."""
        return target(self.facts)

    def get_current_device(self) -> int:
        """Return the number of the device, by which Triton keeps compiled kernels."""
        return self.device()

    def set_current_device(self, device: int) -> None:
        """Do nothing: there is one device."""

    def get_current_stream(self, device: int | None = None) -> int:
        """Return the default stream."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """Return the device that tensors report."""
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        """Return torch's module for the device."""
        return torch.cuda

    def get_benchmarker(self) -> Any:
        """Return the autotuner's timing function."""
        return self.benchmarker

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """Return an empty buffer: nothing is timed here."""
        return torch.empty(1)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Do nothing: there is no cache."""


def install(facts: Facts, benchmarker: Any, device: Callable[[], int] = lambda: 0) -> None:
    """Make this the active driver, and replace the timing functions of `triton.testing`.

    `device`: returns the number of the device: there is one, but code that is compiled in another way is kept apart.
    """
    import triton.testing

    triton.runtime.driver.set_active(FakeDriver(facts, benchmarker, device))  # pyright: ignore
    for name, backend in backends.items():  # libraries look for exactly one driver that is active
        driver_class: Any = backend.driver
        driver_class.is_active = staticmethod(saying((name == "amd") == facts.amd))

    def bench(call: Any, *_: Any, **options: Any) -> Any:
        times = benchmarker(call)
        return times if options.get("quantiles") else times[0]

    for name in ("do_bench", "do_bench_cudagraph"):
        setattr(triton.testing, name, bench)
    _refuse_foreign_assembly()


class ForeignAssemblyError(Exception):
    """Inline assembly is not for this GPU."""


def _refuse_foreign_assembly() -> None:
    """Check each module before it is compiled for AMD's GPUs."""
    convert: Any = HIPBackend.make_ttgir

    def checked(module: Any, *rest: Any) -> Any:
        text = str(module)
        for found in ASSEMBLY.finditer(text) if "inline_asm" in text else ():
            if any(part.strip("=&~ ")[:1] in OF_NVIDIA for part in found["constraints"].split(",")):
                words = " ".join(found["text"].replace("\\0A", " ").replace("\\09", " ").split())
                raise ForeignAssemblyError(f"inline assembly for NVIDIA's GPUs: {words[:80]}")
        return convert(module, *rest)

    backend: Any = HIPBackend
    backend.make_ttgir = staticmethod(checked)
