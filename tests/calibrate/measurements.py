"""Made-up measurements: kernels timed by the model itself, and a calibration on them."""

import math
import random
from dataclasses import replace

from kernel_scientist.calibrate import fit
from kernel_scientist.calibrate.fit import FitPoint
from kernel_scientist.calibrate.history import Calibration
from kernel_scientist.calibrate.times import HostGpu, MeasuredTime
from kernel_scientist.gpu.model import predict
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.gpu.model.issue import Issue
from kernel_scientist.gpu.model.launch import Traffic
from kernel_scientist.gpu.model.predict import KernelLoad
from kernel_scientist.hardware import gpus
from kernel_scientist.records.evaluation import CodeObject

MI300X = HostGpu(name="AMD Instinct MI300X", platform="rocm", platform_version="6.4", torch="2", triton="3", state={})
TRUTH = replace(
    Constants(),
    hbm=0.7,
    l2=0.45,
    l1=0.6,
    lds=0.5,
    matrix=0.5,
    vector=0.6,
    latency_ns=900,
    memory_ns=500,
    launch_us=3.2,
    next_us=1.4,
)


def code(num_warps: int) -> CodeObject:
    return CodeObject(kernel="k", arch="gfx942", digest="", num_warps=num_warps, vgpr=64, lds_bytes=8192)


def points(noise: float, seed: int = 0, families: int = 6) -> list[FitPoint]:
    """Kernels that lean on one resource each, at three sizes, eight of each, timed by the model itself."""
    rng, gpu, found = random.Random(seed), gpus.named("mi300x"), list[FitPoint]()
    for family, number in ((f, n) for f in range(families) for n in range(24)):
        programs, trips = 1 << (6 + 4 * (number % 3)), rng.choice([8, 64])
        cycles = {"vector": 80.0 * trips, "lds": 32.0 * trips, "l1": 32.0 * trips}
        heavy = ("vector", "lds", "l1", "")[family % 4]
        cycles |= {heavy: cycles[heavy] * rng.choice([20, 50])} if heavy else {}
        moved = programs * trips * (4096.0 if family != 3 else 65536.0) * rng.uniform(0.5, 2)
        flops = programs * trips * 2.0**21 * (24 if family == 5 else 1) * rng.uniform(0.5, 2)
        l2 = moved * rng.uniform(1, 2)
        traffic = Traffic(programs, 0.0, l2 * (12 if family == 4 else 1), l2, moved, {"bf16": flops})
        load = KernelLoad(code(rng.choice([4, 8])), traffic, Issue(**cycles, rounds=trips))
        loads = (load, load) if number % 5 == 0 else (load,)
        time_us = predict.time_us(gpu, loads, TRUTH) * math.exp(rng.gauss(0, noise))
        found.append(FitPoint(f"f{family} {number}", f"f{family}", f"c{number % 3}", loads, time_us))
    return found


def calibration(machine: str = "mi300x") -> Calibration:
    found = fit.fit(gpus.named(machine), points(0.02, families=2))
    measured = MeasuredTime(name="a", time_us=1.0, interval_us=(0.9, 1.1), calls=36, left_out=0)
    state = {"driver": "6.12", "clock_sm": "2100 MHz"}
    return Calibration(
        machine=machine,
        device=MI300X.model_copy(update={"state": state}),
        date="2026-11-21",
        seconds=200.0,
        fit=found,
        measured=(measured,),
        dropped={"b": "wrong"},
    )
