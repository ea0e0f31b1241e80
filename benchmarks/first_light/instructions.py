"""Instructions on an MI300 against the machine: `python -m benchmarks.first_light.instructions [--seeds N]`.

Takes the cases of the machine's tests (`tests/gpu/machine`): one instruction each, with the registers of eight waves
before it. The machine runs them; Triton's assembler and linker make code objects of the same text for gfx942; a device
of gfx942 runs those. What the device leaves in a register must be what the documents say, and all other registers what
the machine leaves. Where the documents leave room (units in the last place, which NaN), differences from the machine
are counted and printed by instruction.

Needs pytest and hypothesis, which the tests import, and for the device a torch for ROCm. No device has run it yet.
Not covered: instructions that access memory or LDS, that jump, or that multiply matrices.

Exit code: 0 all agree, 1 some do not, 2 no device of gfx942: the machine's half and the code objects were made.
"""

import argparse
import ctypes
import importlib
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from triton._C.libtriton import amd, llvm

from kernel_scientist.workers.runtime import Runtime
from tests.gpu.machine import harness, test_vectors
from tests.gpu.machine.harness import LANES, SCALARS, Case, Outcome
from tests.gpu.machine.vectors import Instance, differences, expected

ARCH = "gfx942"
MODULES = ("test_carries", "test_compares", "test_lane_exchange", "test_packed", "test_scalars")
"""Tests whose `cases()` begin with a case that accesses no memory."""
NEWER = ("v_pk_minimum3_f16", "v_pk_maximum3_f16")
"""Instructions of those tests that gfx942 lacks and gfx950 has."""
BATCH = 100
"""Cases of a launch: its code must lie within reach of a call."""
OF_DEVICE = f"""
\t.section .rodata,"a",@progbits
\t.p2align 6, 0x0
\t.amdhsa_kernel k
\t\t.amdhsa_group_segment_fixed_size {harness.LDS_BYTES}
\t\t.amdhsa_kernarg_size 40
\t\t.amdhsa_user_sgpr_count 2
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_system_sgpr_workgroup_id_x 1
\t\t.amdhsa_next_free_vgpr 256
\t\t.amdhsa_next_free_sgpr 100
\t\t.amdhsa_accum_offset 256
\t\t.amdhsa_float_denorm_mode_32 3
\t.end_amdhsa_kernel
\t.text
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .args:
{{arguments}}
    .group_segment_fixed_size: {harness.LDS_BYTES}
    .kernarg_segment_align: 8
    .kernarg_segment_size: 40
    .max_flat_workgroup_size: {LANES}
    .name: k
    .private_segment_fixed_size: 0
    .sgpr_count: 106
    .symbol: k.kd
    .vgpr_count: 256
    .wavefront_size: {LANES}
amdhsa.target: amdgcn-amd-amdhsa--{ARCH}
amdhsa.version: [1, 2]
...
\t.end_amdgpu_metadata
"""
"""What a loader wants to know of the kernel, which the machine's own reader does not ask."""
BUFFER, SIZE, END = 1, 2, 3
"""HIP_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE and _END."""


@dataclass(frozen=True)
class Question:
    """A case, with the instance that it was made of if the documents leave its result some room."""

    case: Case
    instance: Instance | None = None

    @property
    def name(self) -> str:
        """The instruction's mnemonic."""
        return self.case.text.split()[0]


class RocmDevice:
    """The GPU that torch finds, by ROCm's runtime library."""

    def __init__(self) -> None:
        torch.zeros(1, device="cuda")
        self.library = Runtime.loaded().handle

    def run(self, image: bytes, questions: Sequence[Question]) -> list[Outcome]:
        """Run a code object made of these questions; return the registers after each case."""
        waves, count = len(questions[0].case.v), len(questions)
        given = [np.stack([getattr(one.case, name) for one in questions], 1) for name in ("v", "s")]
        tensors = [torch.from_numpy(np.ascontiguousarray(x).view(np.int32)).cuda() for x in given]
        tensors += [torch.zeros_like(tensors[0]), tensors[1].new_zeros(waves, count, LANES), tensors[1].new_zeros(1)]
        module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("hipModuleLoadData", ctypes.byref(module), image)
        self._call("hipModuleGetFunction", ctypes.byref(kernel), module, b"k")
        arguments = struct.pack("<5Q", *(x.data_ptr() for x in tensors))
        size = ctypes.c_size_t(len(arguments))
        held = ctypes.create_string_buffer(arguments, len(arguments))
        extra = (ctypes.c_void_p * 5)(BUFFER, ctypes.addressof(held), SIZE, ctypes.addressof(size), END)
        torch.cuda.synchronize()
        shape = (ctypes.c_uint(n) for n in (waves, 1, 1, LANES, 1, 1, 0))
        self._call("hipModuleLaunchKernel", kernel, *shape, None, None, extra)
        self._call("hipDeviceSynchronize")
        v, s = (x.cpu().numpy().view(np.uint32) for x in tensors[2:4])
        self._call("hipModuleUnload", module)
        return [Outcome(v[:, n], s[:, n, :SCALARS]) for n in range(count)]

    def _call(self, name: str, *arguments: Any) -> None:
        if error := getattr(self.library, name)(*arguments):
            raise RuntimeError(f"{name} reports error {error}")


def questions(seeds: int) -> Iterator[list[Question]]:
    """Give all cases in batches of equally many waves; `seeds`: draws of each vector instruction's operands."""
    vectors = test_vectors.instances(test_vectors.table(), range(seeds))
    every = [Question(one.case(), one) for one in vectors]
    for name in MODULES:
        every += [Question(one[0]) for one in importlib.import_module(f"tests.gpu.machine.{name}").cases()]
    usable = [one for one in every if one.name not in NEWER and one.case.memory is None]
    for waves in sorted({len(one.case.v) for one in usable}):
        same = [one for one in usable if len(one.case.v) == waves]
        yield from (same[start : start + BATCH] for start in range(0, len(same), BATCH))


def linked(batch: Sequence[Question]) -> bytes:
    """Return a code object for gfx942 of a batch's kernel."""
    body = harness.text([one.case.text for one in batch], 0).partition("\n\t.section .rodata")[0]
    argument = "      - {{.address_space: global, .offset: {}, .size: 8, .value_kind: global_buffer}}"
    end = OF_DEVICE.format(arguments="\n".join(argument.format(8 * n) for n in range(5)))
    head = f'\t.amdgcn_target "amdgcn-amd-amdhsa--{ARCH}"\n\t.globl k\n\t.p2align 8\n\t.type k,@function\n'
    with tempfile.TemporaryDirectory() as folder:
        object_file, image = Path(folder, "k.o"), Path(folder, "k.hsaco")
        object_file.write_bytes(amd.assemble_amdgcn(head + body + end, ARCH, ""))
        amd.link_hsaco(str(object_file), str(image))
        return image.read_bytes()


def wrong(one: Question, device: Outcome, machine: Outcome) -> bool:
    """Whether the device leaves something else than the documents say, or than the machine where they say nothing."""
    if not np.array_equal(device.s, machine.s):
        return True
    if one.instance is None:
        return not np.array_equal(device.v, machine.v)
    return bool(differences(one.instance, device.v, *expected(one.instance)))


def present() -> bool:
    """Whether torch finds a device of gfx942."""
    if torch.version.hip is None or not torch.cuda.is_available():
        return False
    return torch.cuda.get_device_properties(0).gcnArchName.split(":")[0] == ARCH


def main() -> None:
    """Ask the machine, and the device if there is one; print what differs."""
    parser = argparse.ArgumentParser(prog="instructions", description="Instructions on an MI300 against the machine.")
    parser.add_argument("--seeds", type=int, default=5, help="draws of each vector instruction (%(default)d)")
    llvm.init_targets()
    device = RocmDevice() if present() else None
    asked, differ, bad = Counter[str](), Counter[str](), list[str]()
    for batch in questions(parser.parse_args().seeds):
        machine, image = harness.run([one.case for one in batch]), linked(batch)
        asked.update(one.name for one in batch)
        found = machine if device is None else device.run(image, batch)
        for one, got, want in zip(batch, found, machine, strict=True):
            differ[one.name] += int((got.v != want.v).sum())
            if wrong(one, got, want):
                bad.append(one.case.text)
    total = f"{asked.total()} cases of {len(asked)} instructions"
    for text in bad[:100]:
        print(f"wrong: {text}")
    if device is None:
        made = f"{total} ran in the machine, {len(bad)} of them wrong by the documents, and were linked"
        print(f"instructions: torch finds no {ARCH} here, so nothing is compared with a device; {made}")
        sys.exit(2)
    for name, lanes in differ.most_common():
        if lanes:
            print(f"{name}: {lanes} registers of lanes differ from the machine's, in {asked[name]} cases")
    print(f"instructions: {total} on {torch.cuda.get_device_name(0)}; {len(bad)} cases wrong")
    sys.exit(int(bool(bad)))


if __name__ == "__main__":
    main()
