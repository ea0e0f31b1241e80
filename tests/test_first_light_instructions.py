"""The comparison of a device's instructions with the machine's, as far as it can be shown without a device."""

import os
import re
import struct
import subprocess
import sys
from dataclasses import replace

import pytest
from triton._C.libtriton import llvm

from benchmarks.first_light import instructions
from tests.conftest import ROOT
from tests.gpu.machine import harness

ELF, AMDGPU, OF_GFX942 = b"\x7fELF", 224, 0x4C
"""The first bytes of a file, its machine, and the low byte of its flags (LLVM, AMDGPUUsage)."""


@pytest.mark.slow
def test_without_a_device_the_machines_half_is_run_and_that_is_said() -> None:
    command = [sys.executable, "-m", "benchmarks.first_light.instructions", "--seeds", "1"]
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr[-2000:]
    (line,) = done.stdout.splitlines()
    found = re.search(r"no gfx942 here.*; (\d+) cases of (\d+) instructions ran in the machine, 0 of them wrong", line)
    assert found is not None and int(found[1]) > 2000 and int(found[2]) > 1000, line


def test_a_batch_becomes_a_code_object_that_a_loader_of_gfx942_takes() -> None:
    llvm.init_targets()
    image = instructions.linked(next(instructions.questions(1))[:5])
    machine, flags = struct.unpack_from("<H", image, 18)[0], struct.unpack_from("<I", image, 48)[0]
    assert image.startswith(ELF) and machine == AMDGPU and flags & 0xFF == OF_GFX942
    assert b"k.kd" in image and b"amdgcn-amd-amdhsa--gfx942" in image


def test_what_a_device_leaves_elsewhere_is_wrong() -> None:
    batches = list(instructions.questions(1))
    of_documents = next(one for batch in batches for one in batch if one.instance is not None)
    of_machine = next(one for batch in batches for one in batch if one.instance is None)
    for one in (of_documents, of_machine):
        (right,) = harness.run([one.case])
        assert not instructions.wrong(one, right, right)
        for register in range(harness.VECTORS):
            v = right.v.copy()
            v[3, register, 17] ^= 1 << 22
            assert instructions.wrong(one, replace(right, v=v), right), (one.case.text, register)
        s = right.s.copy()
        s[1, harness.VCC] ^= 1
        assert instructions.wrong(one, replace(right, s=s), right)
