"""A launch of a compiled Triton kernel as the machine takes it: its arguments in the kernarg segment.

Runs in untrusted processes: standard library, torch, and modules of this package.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.dispatch import WAVE, Grid, KernelLaunch
from kernel_scientist.gpu.machine.launch import NotSimulatedError
from kernel_scientist.gpu.machine.listing import Argument

FLOATS = {"fp32": "<f", "f32": "<f", "fp64": "<d", "f64": "<d", "fp16": "<e", "f16": "<e"}


def launch(code: Code, compiled: Any, bound: Mapping[str, Any], grid: Grid) -> KernelLaunch:
    """Return the launch of a kernel that Triton compiled. `bound`: its arguments by name.

    Raises NotSimulatedError if they are not those that the code takes.
    """
    metadata = compiled.metadata
    arguments = _segment(code.kernels[metadata.name].arguments, compiled.src.signature, bound)
    names = {int(t.untyped_storage().data_ptr()): name for name, value in bound.items() for t in tensors({name: value})}
    block = (metadata.num_warps * WAVE, 1, 1)
    return KernelLaunch(code, metadata.name, grid, block, arguments, metadata.shared, tensors=names)


def tensors(bound: Mapping[str, Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors among a launch's arguments, and those in descriptors, reinterpreted tensors and tuples."""
    for value in bound.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            base = getattr(one, "base", one)
            if hasattr(base, "untyped_storage"):
                yield base


def _segment(places: Sequence[Argument], signature: Mapping[str, Any], bound: Mapping[str, Any]) -> bytes:
    """Return the explicit arguments as they lie in the kernarg segment: those that are no constants."""
    given = [(signature[name], value) for name, value in bound.items() if signature.get(name) != "constexpr"]
    explicit = [place for place in places if not place.kind.startswith("hidden")]
    segment = bytearray(max((place.offset + place.size for place in explicit), default=0))
    flat = [one for kind, value in given for one in _flattened(kind, value)]
    if len(flat) > len(explicit):
        raise NotSimulatedError(f"{len(flat)} arguments were given, the kernel takes {len(explicit)}")
    for place, (kind, value) in zip(explicit, flat, strict=False):  # Triton's own scratch memory comes last: none
        segment[place.offset : place.offset + place.size] = _packed(kind, value, place.size)
    return bytes(segment)


def _flattened(kind: Any, value: Any) -> list[tuple[str, Any]]:
    if isinstance(kind, tuple | list):
        parts = zip(kind, value, strict=True)
        return [one for part, each in parts if part != "constexpr" for one in _flattened(part, each)]
    if str(kind).startswith("tensordesc"):
        return _described(str(kind), value)
    return [(str(kind), value)]


def _described(kind: str, given: Any) -> list[tuple[str, Any]]:
    """Return the arguments of a tensor descriptor: gfx942 has none, so its parts are passed, the sizes twice."""
    sizes = [("i64", number) for number in (*given.shape, *given.strides)]
    flags = [("i1", given.padding == "nan"), ("i1", getattr(given, "round_f32_to_tf32", False))]
    return [(f"*{kind}", given.base), *sizes, *flags, *sizes]


def _packed(kind: str, value: Any, size: int) -> bytes:
    base = getattr(value, "base", value)  # of a reinterpreted tensor
    if hasattr(base, "data_ptr"):
        return int(base.data_ptr()).to_bytes(8, "little")
    if kind in FLOATS:
        return struct.pack(FLOATS[kind], value)
    if kind == "bf16":
        return struct.pack("<f", value)[2:]
    return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
