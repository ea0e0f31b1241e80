"""The calibration suite: kernels of known work, at sizes that memory, arithmetic or latency limits."""

import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.gpu.capture import case_shapes
from kernel_scientist.hardware import occupancy
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.kernel import digest
from kernel_scientist.sandbox import protocol

KERNELS = Path(__file__).with_name("kernels")
Setting = Mapping[str, int]
"""Values of a kernel's tunables."""


@dataclass(frozen=True)
class Family:
    """One computation in one type: the sizes that it is timed on, the settings of its kernel's tunables."""

    name: str
    """The kernel's file in `kernels/`, and the type if there are several."""
    sizes: tuple[tuple[int, ...], ...]
    """Elements; rows and columns; or m, n and k."""
    settings: tuple[Setting, ...]

    def inputs(self, sizes: Sequence[int], gpu: Gpu) -> protocol.Header:
        """Return the description of the kernel's inputs (`gpu.capture.case_shapes`); the output is the last one."""

        def tensor(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
            return torch.empty(shape, dtype=dtype, device="meta")

        x = tensor(*sizes)
        match kernel(self.name), tuple(sizes):
            case "gemm", (m, n, k):
                fnuz = gpu.arch.startswith("gfx94")  # the e4m3 type that CDNA3 multiplies; others multiply OCP's
                fp8 = torch.float8_e4m3fnuz if fnuz else torch.float8_e4m3fn
                operand = fp8 if self.name.endswith("fp8") else torch.bfloat16
                return case_shapes.header((tensor(m, k, dtype=operand), tensor(n, k, dtype=operand), tensor(m, n)))
            case "rmsnorm", (_, columns):
                return case_shapes.header((x, tensor(columns), x))
            case "reduction", (rows, _):
                return case_shapes.header((x, tensor(rows, dtype=torch.float32)))
            case _:
                return case_shapes.header((x, x))

    def source(self, setting: Setting) -> str:
        """Return the kernel with its tunables set."""
        return KernelSource((KERNELS / f"{kernel(self.name)}.py").read_text()).with_tunables(dict(setting)).text

    def lds_bytes(self, setting: Setting, gpu: Gpu) -> int:
        """Return the bytes of local memory for the tiles of a pipelined loop: a buffer per stage, on AMD one less."""
        if "BLOCK_K" not in setting:
            return 0
        stages = setting["num_stages"] - (1 if gpu.arch.startswith("gfx") else 0)
        tiles = (setting["BLOCK_M"] + setting["BLOCK_N"]) * setting["BLOCK_K"]
        return max(1, stages) * tiles * (1 if self.name.endswith("fp8") else 2)


@dataclass(frozen=True)
class CalibrationKernel:
    """One kernel with one setting on one size."""

    family: str
    case: str
    """The size's name, such as `m256-n256-k16384`: entries of one family and case do the same work."""
    name: str
    """Family, case and setting in one word each: unique."""
    source: str
    inputs: protocol.Header


def entries(gpu: Gpu) -> tuple[CalibrationKernel, ...]:
    """Return the suite for a GPU, without the settings whose tiles do not fit into its local memory."""
    most = occupancy.limits(gpu.arch).lds_workgroup
    found: list[CalibrationKernel] = []
    for family in FAMILIES:
        for setting in (s for s in family.settings if family.lds_bytes(s, gpu) <= most):
            source, label = family.source(setting), "-".join(f"{name}{value}" for name, value in setting.items())
            for sizes in family.sizes:
                letters = ("n", "rc", "mnk")[len(sizes) - 1]
                case = "-".join(f"{letter}{size}" for letter, size in zip(letters, sizes, strict=True))
                name = f"{family.name} {case} {label}"
                found.append(CalibrationKernel(family.name, case, name, source, family.inputs(sizes, gpu)))
    return tuple(found)


def kernel(family: str) -> str:
    """Return the name of a family's kernel."""
    return family.partition("-")[0]


def imported(source: str, folder: Path) -> Callable[[Any], Any]:
    """Import a kernel from a file of its own, because Triton reads its source from there; return its function."""
    path = folder / f"suite_{digest(source)}.py"
    path.write_text(source)
    return runpy.run_path(str(path))["custom_kernel"]


def _expected(name: str, x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    match name:
        case "copy":
            return x
        case "reduction":
            return x.sum(dim=1)
        case "softmax":
            return x.softmax(dim=1)
        case "rmsnorm":
            return torch.nn.functional.rms_norm(x, x.shape[1:], others[0], eps=1e-6)
        case _:
            return x @ others[0].T


def deviation(family: str, data: tuple[Any, ...], output: torch.Tensor) -> float:
    """Return the largest error of an output's elements, relative to |element| + root mean square of all elements.

    NaN if any element of the output is NaN.
    """
    expected = _expected(kernel(family), *(item.float() for item in data[:-1]))
    usual = expected.square().mean().sqrt()
    return float(((output.float() - expected).abs() / (expected.abs() + usual)).max())


def tolerance(family: str) -> float:
    """Return the largest deviation of a correct output; that of a wrong one is about 1.

    A rounding to bf16 is 0.004. Hopper's matrix units sum fp8 with some 14 bits, which over thousands of terms has
    made 0.02 (papers: 2412.19437, section 3.3.2).
    """
    return 0.15 if family.endswith("fp8") else 0.02


def _settings(names: str, *rows: tuple[int, ...]) -> tuple[Setting, ...]:
    return tuple(dict(zip(names.split(), row, strict=True)) for row in rows)


_ROWS = _settings(
    "BLOCK num_warps num_stages",
    *((256, 1, 1), (512, 2, 2), (1024, 4, 1), (1024, 4, 3), (4096, 8, 2), (8192, 16, 1)),
)
_ROUNDS = _settings(
    "BLOCK ROUNDS num_warps",
    *((256, 1, 1), (1024, 1, 4), (4096, 1, 8), (1024, 16, 4), (8192, 1, 4), (2048, 64, 2)),
)
_WHOLE_ROWS = _settings("ROWS num_warps", (1, 2), (1, 4), (1, 8), (2, 4), (4, 8), (2, 16))
_TILES = _settings(
    "BLOCK_M BLOCK_N BLOCK_K GROUP_M SPLIT_K num_warps num_stages",
    *((16, 64, 128, 8, 16, 4, 2), (32, 32, 64, 8, 1, 2, 2), (32, 64, 128, 8, 8, 4, 2), (64, 64, 32, 8, 1, 4, 2)),
    *((64, 64, 64, 8, 1, 4, 3), (64, 64, 64, 8, 4, 4, 3), (128, 64, 64, 8, 1, 4, 2), (128, 128, 32, 8, 1, 8, 2)),
    *((128, 128, 64, 8, 1, 8, 3), (128, 128, 64, 8, 1, 4, 1), (128, 128, 64, 1, 8, 8, 2), (256, 128, 32, 8, 1, 8, 2)),
    *((128, 256, 64, 8, 1, 8, 3), (128, 256, 64, 8, 1, 8, 4)),
)
_PRODUCTS = ((4096, 4096, 4096), (16, 8192, 8192), (256, 256, 16384))
FAMILIES = (
    Family("copy", ((1 << 15,), (1 << 23,), (1 << 28,)), _ROUNDS),
    Family("reduction", ((16, 1 << 20), (4096, 8192), (1 << 18, 512)), _ROWS),
    Family("softmax", ((64, 1 << 16), (8192, 4096), (1 << 17, 512)), _ROWS),
    Family("rmsnorm", ((128, 8192), (16384, 4096), (1 << 18, 256)), _WHOLE_ROWS),
    Family("gemm-bf16", _PRODUCTS, _TILES),
    Family("gemm-fp8", _PRODUCTS, _TILES),
)
