"""Operations of torch as the model sees them: kernels that stream their tensors through memory."""

from kernel_scientist.gpu.model.launch import Traffic
from kernel_scientist.gpu.model.predict import Load
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.evaluation import CodeObject
from kernel_scientist.records.gpu import TorchOperation

STREAMING = frozenset((
    *("zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "arange"),
    *("zero_", "fill_", "copy_", "__setitem__", "clone", "contiguous", "to", "type", "type_as", "float", "half"),
    *("bfloat16", "int", "long", "reshape", "flatten", "cat", "stack", "pad", "repeat", "expand", "__getitem__"),
    *("add", "sub", "mul", "div", "neg", "relu", "add_", "sub_", "mul_", "div_", "true_divide", "where", "clamp"),
    *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__iadd__", "__isub__"),
    *("__imul__", "__itruediv__", "sum", "mean", "amax", "amin", "transpose", "t", "permute"),
))  # fmt: skip
"""Operations whose time is that of their bytes."""
LANES, WIDTH, WARPS = 256, 16, 4
"""Threads of a workgroup, bytes of each thread, and warps: usual values of torch's elementwise kernels."""


def load(operation: TorchOperation, gpu: Gpu) -> Load:
    """Return the load of an operation: each thread moves 16 bytes."""
    moved = sum(operation.storages.values())
    mix = {f"vmem_load {8 * WIDTH // 2}": 1, f"vmem_store {8 * WIDTH // 2}": 1, "valu": 2 * WIDTH}
    name = f"torch.{operation.name}"
    code = CodeObject(kernel=name, arch=gpu.arch, digest="", num_warps=WARPS, vgpr=32, mix=(mix,))
    programs = max(1, round(moved / (LANES * WIDTH)))
    return Load(code, Traffic(programs, moved, moved, moved, moved, storages=operation.storages))
