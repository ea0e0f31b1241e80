"""Runs generated kernels in the machine, as clang compiles them at several levels, and on the host, and compares."""

import ctypes
import os
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernel_scientist.gpu.machine import findings
from kernel_scientist.gpu.machine.checking import Checks, Tensor
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.dispatch import KernelLaunch, Options
from kernel_scientist.gpu.machine.memory import Memory
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.gpu.toolchains.quoted_sources import Sources
from tests.gpu.machine import harness
from tests.gpu.machine.generated_exchanges import GROUP
from tests.gpu.machine.generated_expressions import TYPES
from tests.gpu.machine.generated_kernels import (
    CELLS,
    GROUPS,
    LANES,
    MOST_WIDTH,
    GeneratedKernel,
    device_text,
    generated,
    host_text,
)

Array = np.ndarray[Any, np.dtype[Any]]
LEVELS = ("-O3", "-O1", "-O0")
FLAGS = ("-ffp-contract=off", "-fwrapv")
STORING = LANES - 37
"""Lanes that store."""
TIMEOUT_S = 600
_TYPES = dict(zip(TYPES, (np.int32, np.float32, np.int64, np.float64, np.int16, np.uint8, np.float16), strict=True))
_ALIGNED = 64


@dataclass(frozen=True)
class Disagreement:
    """What is wrong with a kernel at a level."""

    number: int
    level: str
    words: str


class Data:
    """The arguments of one launch of a kernel."""

    def __init__(self, number: int) -> None:
        """Draw what is loaded; what is stored is zero before."""
        random = np.random.default_rng(number)
        self.inputs = [_aligned(_drawn(random, kind, LANES * MOST_WIDTH)) for kind in TYPES]
        self.outputs = [_aligned(np.zeros(LANES, _TYPES[kind])) for kind in TYPES]
        self.outputs += [_aligned(np.zeros(CELLS, np.int32)), _aligned(np.zeros(CELLS, np.uint64))]

    @property
    def names(self) -> list[str]:
        """Names of the outputs."""
        return [*TYPES.values(), "cells", "wide_cells"]

    def pointers(self) -> list[int]:
        """Addresses of all arrays in the order of the kernel's parameters."""
        return [int(array.ctypes.data) for array in (*self.inputs, *self.outputs)]


def disagreements(numbers: Sequence[int], levels: Sequence[str] = LEVELS) -> list[Disagreement]:
    """Return where the kernels of these numbers differ from the host at a level, or are accused of something."""
    kernels = [generated(number) for number in numbers]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as several:
        host = several.submit(on_host, kernels, Path(folder))
        texts = [several.submit(assembly, kernels, level) for level in levels]
        found = list[Disagreement]()
        for level, text in zip(levels, texts, strict=True):
            found += compared(kernels, host.result(), text.result(), level)
    return found


def assembly(kernels: Sequence[GeneratedKernel], level: str) -> str:
    """Compile for gfx942 at a level."""
    made = hip.compile_hip(device_text(kernels), "gfx942", [*FLAGS, level], TIMEOUT_S)
    assert made.ok, made.log[-4000:]
    return made.assembly


def on_host(kernels: Sequence[GeneratedKernel], folder: Path) -> ctypes.CDLL:
    """Compile for the host with the same compiler."""
    tools = hip.find()
    assert not isinstance(tools, str), tools
    source, made = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(host_text(kernels))
    flags = ("-O0", "-std=c++20", "-march=native", "-fno-math-errno", "-w", "-shared", "-fPIC", "-x", "c++", *FLAGS)
    command = [tools.program, *flags, str(source), "-o", str(made), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert not done.returncode, done.stderr[-4000:]
    return ctypes.CDLL(str(made))


def compared(kernels: Sequence[GeneratedKernel], own: ctypes.CDLL, text: str, level: str) -> list[Disagreement]:
    """Return where what kernels give in the machine, as assembly of a level, differs from what they give on the host,
    and what else is wrong with them."""
    code = Code(harness.machine(), text)
    lacks = {statement.mnemonic for statement in code.missing} - {"s_sendmsg"}  # -O0 keeps what calls the host, unused
    assert not lacks, lacks
    found = list[Disagreement]()
    checks = Checks(code.library)
    for kernel in kernels:
        want, got = Data(kernel.number), Data(kernel.number)
        own[kernel.name](*(ctypes.c_void_p(place) for place in want.pointers()), STORING)
        words = _checked(kernel, code, got, checks)
        for name, a, b in zip(got.names, got.outputs, want.outputs, strict=True):
            lanes = np.flatnonzero(~_equal(a, b))
            words += [f"{len(lanes)} of {name}: {a[n]}, not {b[n]}, in lane {n}" for n in lanes[:1]]
        found += [Disagreement(kernel.number, level, "; ".join(words))] if words else []
    accused = findings.defects(checks, Sources())
    return found + [
        Disagreement(int(one.kernel[1:]), level, f"{one.kind} in {one.where}: {one.note}") for one in accused
    ]


def _checked(kernel: GeneratedKernel, code: Code, data: Data, checks: Checks) -> list[str]:
    """Run a kernel in the machine; return how it ended, unless it ended well. `checks` know what else is wrong."""
    memory = Memory()
    for n, array in enumerate((*data.inputs, *data.outputs)):
        place = int(array.ctypes.data)
        memory.add(place, array.nbytes, n >= len(data.inputs))
        checks.tensors[place] = Tensor(f"argument {n}", array.itemsize, array.nbytes)
    arguments = struct.pack(f"<{len(data.pointers())}Qi", *data.pointers(), STORING)
    launch = KernelLaunch(code, kernel.name, (GROUPS, 1, 1), (GROUP, 1, 1), arguments)
    run = checks.run(launch, memory, Options(seed=kernel.number + 1))
    faults = [f"it is refused: {one.statement.mnemonic}" for one in run.result.findings]
    return faults + [f"it ended as {run.outcome.name}"] * bool(run.outcome)


def _equal(a: Array, b: Array) -> Array:
    bits = a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")
    return bits | (np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else bits


def _drawn(random: np.random.Generator, kind: str, count: int) -> Array:
    """Return values of all magnitudes; of numbers, one in sixteen is zero, an infinity, a NaN or denormal."""
    dtype = np.dtype(_TYPES[kind])
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        wide = random.integers(limits.min, limits.max, count, dtype, endpoint=True)
        return wide >> random.integers(0, dtype.itemsize * 8 - 1, count).astype(dtype)
    values = random.normal(0, 100, count).astype(dtype)
    tiny = np.finfo(dtype).smallest_subnormal * 5
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, tiny, 1.0, -2.0], dtype)
    return np.where(random.random(count) < 1 / 16, random.choice(special, count), values)


def _aligned(array: Array) -> Array:
    """Return a copy at an address that vectors may be loaded from."""
    raw = np.zeros(array.nbytes + _ALIGNED, np.uint8)
    start = -raw.ctypes.data % _ALIGNED
    copy = raw[start : start + array.nbytes].view(array.dtype)
    copy[:] = array
    return copy
