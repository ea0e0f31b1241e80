"""What the calibration is made of: problems whose work is known, at sizes that end at memory, arithmetic or latency."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.kernel import Work
from kernel_scientist.sandbox import protocol

Setting = Mapping[str, int]


@dataclass(frozen=True)
class Family:
    """One problem: a kernel's file, the sizes it is timed on, the settings of its tunables."""

    name: str
    file: str
    """In `kernels/`."""
    letters: str
    """Names of the sizes: `rc` rows and columns, `mnk`, `n` elements."""
    sizes: tuple[tuple[int, ...], ...]
    settings: tuple[Setting, ...]
    bits: int = 16
    """Of an input's elements."""

    def case(self, sizes: Sequence[int]) -> str:
        """Return a size's name, such as `m256-n256-k16384`."""
        return "-".join(f"{letter}{size}" for letter, size in zip(self.letters, sizes, strict=True))

    def inputs(self, sizes: Sequence[int], gpu: Gpu) -> protocol.Header:
        """Return the header of what its kernel is called on (`inspection.shapes`); the output comes last."""
        match self.file, tuple(sizes):
            case "gemm", (m, n, k):
                operand = fp8(gpu) if self.bits == 8 else "bfloat16"
                return _tuple(_tensor(operand, m, k), _tensor(operand, n, k), _tensor("bfloat16", m, n))
            case "rmsnorm", (rows, columns):
                x = _tensor("bfloat16", rows, columns)
                return _tuple(x, _tensor("bfloat16", columns), x)
            case "reduction", (rows, columns):
                return _tuple(_tensor("bfloat16", rows, columns), _tensor("float32", rows))
            case _:
                x = _tensor("bfloat16", *sizes)
                return _tuple(x, x)

    def work(self, sizes: Sequence[int], gpu: Gpu) -> Work:
        """Return what a size must move and compute at the least."""
        header = self.inputs(sizes, gpu)
        moved = sum(_bytes(item) for item in header["items"])
        if self.file == "gemm":
            m, n, k = sizes
            return Work(flops=2.0 * m * n * k, bytes=float(moved), dtype="fp8" if self.bits == 8 else "bf16")
        elements = 1
        for size in sizes:
            elements *= size
        return Work(flops=float(FLOPS[self.file] * elements), bytes=float(moved), dtype="fp32")


FLOPS = {"copy": 0, "reduction": 1, "softmax": 5, "rmsnorm": 4}
"""Per element; of no weight beside the bytes."""


def fp8(gpu: Gpu) -> str:
    """Return torch's name of the e4m3 type that a GPU multiplies: CDNA3's is FNUZ, the others' is OCP's."""
    return "float8_e4m3fnuz" if gpu.arch.startswith("gfx94") else "float8_e4m3fn"


def expected(family: str, data: tuple[Any, ...]) -> torch.Tensor:
    """Return what torch makes of the inputs, in fp32."""
    wide = [item.float() for item in data[:-1]]
    match family.split("-")[0]:
        case "copy":
            return wide[0]
        case "reduction":
            return wide[0].sum(dim=1)
        case "softmax":
            return torch.softmax(wide[0], dim=1)
        case "rmsnorm":
            return wide[0] * torch.rsqrt(wide[0].square().mean(dim=1, keepdim=True) + 1e-6) * wide[1]
        case _:
            return wide[0] @ wide[1].T


TOLERANCE, FP8_TOLERANCE = 0.02, 0.15
"""Of an element, or of the usual size of elements where that is more. A rounding to bf16 is 0.004; Hopper's matrix
units sum fp8 with some 14 bits, which over thousands of terms was seen to be 0.02 (papers: 2412.19437, section 3.3.2).
What is wrong is off by about 1."""


def tolerance(family: str) -> float:
    """Return by how much an element of a right output may be off."""
    return FP8_TOLERANCE if family.endswith("fp8") else TOLERANCE


def deviation(family: str, data: tuple[Any, ...], output: torch.Tensor) -> float:
    """Return by how much the worst element of an output is off, in parts of its size; NaN is not within any bound."""
    right = expected(family, data)
    usual = right.square().mean().sqrt()
    return float(((output.float() - right).abs() / (right.abs() + usual)).max())


def _settings(names: str, *rows: tuple[int, ...]) -> tuple[Setting, ...]:
    return tuple(dict(zip(names.split(), row, strict=True)) for row in rows)


_ROWS = _settings(
    "BLOCK num_warps num_stages",
    (256, 1, 1),
    (512, 2, 2),
    (1024, 4, 1),
    (1024, 4, 3),
    (4096, 8, 2),
    (8192, 16, 1),
)
_TILES = _settings(
    "BLOCK_M BLOCK_N BLOCK_K GROUP_M SPLIT_K num_warps num_stages",
    (16, 64, 128, 8, 16, 4, 2),
    (32, 32, 64, 8, 1, 2, 2),
    (32, 64, 128, 8, 8, 4, 2),
    (64, 64, 32, 8, 1, 4, 2),
    (64, 64, 64, 8, 1, 4, 3),
    (64, 64, 64, 8, 4, 4, 3),
    (128, 64, 64, 8, 1, 4, 2),
    (128, 128, 32, 8, 1, 8, 2),
    (128, 128, 64, 8, 1, 8, 3),
    (128, 128, 64, 8, 1, 4, 1),
    (128, 128, 64, 1, 8, 8, 2),
    (256, 128, 32, 8, 1, 8, 2),
    (128, 256, 64, 8, 1, 8, 3),
    (128, 256, 64, 8, 1, 8, 4),
)
_PRODUCTS = ((4096, 4096, 4096), (16, 8192, 8192), (256, 256, 16384))

FAMILIES = (
    Family(
        "copy",
        "copy",
        "n",
        ((1 << 15,), (1 << 23,), (1 << 28,)),
        _settings(
            "BLOCK ROUNDS num_warps",
            (256, 1, 1),
            (1024, 1, 4),
            (4096, 1, 8),
            (1024, 16, 4),
            (8192, 1, 4),
            (2048, 64, 2),
        ),
    ),
    Family("reduction", "reduction", "rc", ((16, 1 << 20), (4096, 8192), (1 << 18, 512)), _ROWS),
    Family("softmax", "softmax", "rc", ((64, 1 << 16), (8192, 4096), (1 << 17, 512)), _ROWS),
    Family(
        "rmsnorm",
        "rmsnorm",
        "rc",
        ((128, 8192), (16384, 4096), (1 << 18, 256)),
        _settings("ROWS num_warps", (1, 2), (1, 4), (1, 8), (2, 4), (4, 8), (2, 16)),
    ),
    Family("gemm-bf16", "gemm", "mnk", _PRODUCTS, _TILES),
    Family("gemm-fp8", "gemm", "mnk", _PRODUCTS, _TILES, bits=8),
)


def _tensor(dtype: str, *shape: int) -> protocol.Header:
    stride = [1] * len(shape)
    for place in range(len(shape) - 2, -1, -1):
        stride[place] = stride[place + 1] * shape[place + 1]
    return {"kind": "tensor", "dtype": dtype, "shape": list(shape), "stride": stride}


def _tuple(*items: protocol.Header) -> protocol.Header:
    return {"kind": "tuple", "items": list(items)}


def _bytes(header: protocol.Header) -> int:
    size = getattr(torch, header["dtype"]).itemsize
    for length in header["shape"]:
        size *= length
    return int(size)
