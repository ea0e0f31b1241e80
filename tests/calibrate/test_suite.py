"""The suite: its kernels compile, are correct and can be timed."""

import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kernel_scientist.calibrate import published, suite
from kernel_scientist.calibrate.features import features
from kernel_scientist.gpu.model import predict
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.hardware import gpus
from kernel_scientist.records.errors import SetupError
from tests.conftest import ROOT, dedent


@pytest.mark.parametrize("machine", list(gpus.GPUS))
def test_the_suite_has_sixty_kernels_in_six_families_at_three_sizes_each(machine: str) -> None:
    entries = suite.entries(gpus.named(machine))
    assert len(entries) >= 60 and len({e.name for e in entries}) == len(entries)
    assert len({e.family for e in entries}) == 6
    for family in suite.FAMILIES:
        assert len({e.case for e in entries if e.family == family.name}) == 3
    fp8 = "float8_e4m3fnuz" if gpus.named(machine).arch == "gfx942" else "float8_e4m3fn"
    assert {e.inputs["items"][0]["dtype"] for e in entries if e.family == "gemm-fp8"} == {fp8}


def moved_bytes(entry: suite.CalibrationKernel) -> int:
    """The bytes that a kernel must read and write."""
    items = entry.inputs["items"]
    return sum(math.prod(item["shape"]) * getattr(torch, item["dtype"]).itemsize for item in items)


def test_a_family_ends_at_memory_and_at_latency_and_a_gemm_at_arithmetic() -> None:
    gpu = gpus.named("mi300x")
    entries = suite.entries(gpu)
    for family in suite.FAMILIES:
        memory_us = [moved_bytes(e) / gpu.memory_gbps * 1e-3 for e in entries if e.family == family.name]
        assert min(memory_us) < 15 and max(memory_us) > 10  # a launch, and much more
    gemm = next(e for e in entries if e.name.startswith("gemm-bf16 m4096-n4096-k4096"))
    assert 2 * 4096**3 / gpu.peak_gflops["bf16"] > 2 * moved_bytes(gemm) / gpu.memory_gbps


@pytest.mark.slow
def test_kernels_compile_and_are_counted_without_a_gpu() -> None:
    gpu = gpus.named("mi300x")
    settings = (
        "copy.*ROUNDS16",
        "softmax.*BLOCK512",
        "gemm-bf16.*SPLIT_K4",
        "gemm-fp8.*BLOCK_K64.*SPLIT_K1-num_warps2",
    )
    chosen = [e for e in suite.entries(gpu) if any(all(p in e.name for p in s.split(".*")) for s in settings)]
    assert len(chosen) == 12
    seen = features(chosen, gpu)
    assert not seen.missed and len(seen.loads) == 12
    for entry in chosen:
        loads = seen.loads[entry.name]
        assert len(loads) == (2 if "SPLIT_K4" in entry.name else 1)
        flops = sum(sum(load.traffic.flops.values()) for load in loads)
        sizes = [int(size) for size in re.findall(r"\d+", entry.case)]
        assert flops >= 2 * math.prod(sizes) if entry.family.startswith("gemm") else flops == 0
        assert predict.time_us(gpu, loads, Constants()) > 0.99e-3 * moved_bytes(entry) / gpu.memory_gbps


def test_a_source_that_does_not_compile_says_why() -> None:
    gpu = gpus.named("mi300x")
    entry = next(e for e in suite.entries(gpu) if e.family == "copy")
    seen = features([replace(entry, source=entry.source.replace("tl.load(x", "tl.lode(x"))], gpu)
    assert not seen.loads and "lode" in seen.missed[entry.name]
    with pytest.raises(SetupError, match=r"(?s)none of 1 kernels can be compiled and counted here.*lode"):
        published.require(seen)


@pytest.mark.slow
def test_every_kernel_is_right_and_can_be_timed_in_the_interpreter(tmp_path: Path) -> None:
    """The whole of `measure`, but for the device: tensors lie in main memory, and events tell the host's time."""
    script = dedent("""
        import contextlib, json, sys, time
        import torch
        from tests.interpreter import numerics
        from kernel_scientist.calibrate import builds, measure, suite
        from kernel_scientist.calibrate.suite import CalibrationKernel
        from kernel_scientist.hardware import gpu as host_gpu
        from kernel_scientist.hardware import gpus
        from tests.calibrate.measurements import MI300X

        numerics.install()

        class Event:
            def __init__(self, enable_timing): pass
            def record(self): self.at = time.perf_counter()
            def query(self): return False
            def elapsed_time(self, other): return 1000 * (other.at - self.at)

        torch.cuda.Event = Event
        torch.cuda.synchronize = torch.cuda.empty_cache = lambda: None
        host_gpu.lock = lambda platform: "no gpu"
        measure.DEVICE = builds.DEVICE = "cpu"
        measure.SWEEP_BYTES, measure.GROUP = 1 << 10, 9
        measure.ROUNDS, measure.CALLS, measure.LEAST = 1, 1, 1
        small = {"copy": (3000,), "reduction": (3, 700), "softmax": (3, 700), "rmsnorm": (5, 200)}
        entries = []
        for machine in ("mi300x", "h100"):
            gpu = gpus.named(machine)
            for family in suite.FAMILIES:
                sizes = small.get(family.name, (48, 80, 1024))
                for setting in (family.settings[1], family.settings[2]):
                    name = f"{machine} {family.name} {setting}"
                    inputs = family.inputs(sizes, gpu)
                    entries.append(CalibrationKernel(family.name, machine, name, family.source(setting), inputs))
        wrong = entries[0].source.replace("tl.load(x + offsets", "0 * tl.load(x + offsets")
        entries.append(CalibrationKernel("copy", "mi300x", "wrong", wrong, entries[0].inputs))
        entries.append(CalibrationKernel("copy", "mi300x", "broken", "raise ValueError('no')", entries[0].inputs))
        found = []
        measure.measure(MI300X, entries, 500, found.append)
        dropped = {one.name: one.reason for one in found if isinstance(one, measure.Dropped)}
        print(json.dumps([[one.name for one in found if one.name not in dropped], dropped]))
    """)
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    measured, dropped = json.loads(done.stdout)
    assert len(measured) == 24, dropped
    assert dropped["wrong"].startswith("wrong: an element is off") and dropped["broken"] == "ValueError: no"
