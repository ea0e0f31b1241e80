"""What a GPU that is not present tells about itself, for `device` and the compiler.

Runs in untrusted processes.
"""

from dataclasses import dataclass
from types import SimpleNamespace

from kernel_scientist.hardware import grids, occupancy


class RefusedLaunchError(Exception):
    """The GPU's driver would refuse a launch."""


Excess = tuple[int, int, str]
"""What of a workgroup a GPU lacks: how much is needed, the most there is, and of what."""


@dataclass(frozen=True)
class Facts:
    """The properties of the fake GPU, from the table of GPUs."""

    name: str
    arch: str
    units: int
    wave: int
    lds_bytes: int
    l2_bytes: int
    memory_bytes: int = 128 << 30

    def excess(self, kernel: str, num_warps: int, lds_bytes: int) -> Excess | None:
        """Return what of a workgroup the GPU lacks; None if it can start."""
        threads, of = num_warps * self.wave, f"of a workgroup of {kernel} on {self.arch}"
        if threads > occupancy.MOST_THREADS:
            return threads, occupancy.MOST_THREADS, f"threads {of}"
        return (lds_bytes, self.lds_bytes, f"LDS {of}") if lds_bytes > self.lds_bytes else None

    def require_grid(self, kernel: str, grid: grids.Grid, num_warps: int) -> None:
        """Raise RefusedLaunchError for a launch by Triton whose grid the GPU's driver refuses."""
        if reason := grids.refusal(self.arch, grid, num_warps * self.wave):
            raise RefusedLaunchError(f"a launch of {kernel} is refused: {reason}")

    @property
    def amd(self) -> bool:
        """Whether the GPU is AMD's."""
        return self.arch.startswith("gfx")

    @property
    def capability(self) -> tuple[int, int]:
        """Return torch's compute capability: gfx942 is (9, 4)."""
        digits = self.arch.removeprefix("gfx").removeprefix("sm_")
        return int(digits[0]), int(digits[1])

    def programs(self) -> dict[str, str]:
        """Return what programs that ask the driver print, by name: the GPU's name only."""
        names = ("rocminfo", "rocm-smi", "amd-smi", "rocm_agent_enumerator") if self.amd else ("nvidia-smi",)
        return dict.fromkeys(names, f"{self.arch if self.amd else self.name}\n")

    def properties(self) -> SimpleNamespace:
        """Return the result of `torch.cuda.get_device_properties`."""
        major, minor = self.capability
        return SimpleNamespace(
            name=self.name,
            gcnArchName=f"{self.arch}:sramecc+:xnack-" if self.amd else "",
            multi_processor_count=self.units,
            total_memory=self.memory_bytes,
            warp_size=self.wave,
            major=major,
            minor=minor,
            shared_memory_per_block=self.lds_bytes,
            shared_memory_per_block_optin=self.lds_bytes,
            shared_memory_per_multiprocessor=self.lds_bytes,
            L2_cache_size=self.l2_bytes,
            max_threads_per_multi_processor=2048,
            regs_per_multiprocessor=65536,
            is_integrated=0,
            is_multi_gpu_board=0,
        )
