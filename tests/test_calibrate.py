"""Calibration: the suite compiles and is right, the fit finds constants, the command tells what is known."""

import json
import math
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import gpu_check
from kernel_scientist.calibrate import device, figures, fit, history, measure, run, suite
from kernel_scientist.calibrate.device import Device
from kernel_scientist.calibrate.families import FAMILIES
from kernel_scientist.calibrate.features import features
from kernel_scientist.gpu.model import constants, predict
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.gpu.model.predict import Load, Traffic
from kernel_scientist.hardware import gpus
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import CodeObject
from tests.conftest import ROOT, dedent, lab_environment

FITTED = ("rho", "error", "families", "constants")
HERE = Device(name="AMD Instinct MI300X", platform="rocm", platform_version="6.4", torch="2", triton="3", state={})
TRUTH = replace(
    Constants(), hbm=0.7, l2=0.45, l1=0.6, lds=0.5, matrix=0.5, vector=0.6, latency_ns=900, launch_us=3.2, next_us=1.4
)
PROGRAM = (
    "from kernel_scientist.cli import main; from kernel_scientist.cli.machine import calibrate; "
    "main.add_command(calibrate); main()"
)


@pytest.mark.parametrize("machine", list(gpus.GPUS))
def test_the_suite_has_sixty_kernels_in_six_families_at_three_sizes_each(machine: str) -> None:
    entries = suite.entries(gpus.named(machine))
    assert len(entries) >= 60 and len({e.name for e in entries}) == len(entries)
    assert len({e.family for e in entries}) == 6
    for family in FAMILIES:
        assert len({e.case for e in entries if e.family == family.name}) == 3
    assert {e.inputs["items"][0]["dtype"] for e in entries if e.family == "gemm-fp8"} == {
        "float8_e4m3fnuz" if gpus.named(machine).arch == "gfx942" else "float8_e4m3fn"
    }


def test_a_family_ends_at_memory_and_at_latency_and_a_gemm_at_arithmetic() -> None:
    gpu = gpus.named("mi300x")
    for family in FAMILIES:
        ridges = [family.work(sizes, gpu).bytes / gpu.memory_gbps * 1e-3 for sizes in family.sizes]
        assert min(ridges) < 15 and max(ridges) > 10  # us of memory: a launch, and much more
    gemm = next(f for f in FAMILIES if f.name == "gemm-bf16")
    work = gemm.work((4096, 4096, 4096), gpu)
    assert work.flops / gpu.peak_gflops["bf16"] > 2 * work.bytes / gpu.memory_gbps


@pytest.mark.parametrize("machine", ["mi300x", "h100"])
def test_kernels_compile_and_are_traced_without_a_gpu(machine: str) -> None:
    gpu = gpus.named(machine)
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
        assert flops >= entry.work.flops if entry.family.startswith("gemm") else flops == 0
        assert predict.time_us(gpu, loads, Constants()) > predict.floor_us(entry.work, gpu) * 0.99


def test_a_source_that_does_not_compile_says_why() -> None:
    gpu = gpus.named("mi300x")
    entry = next(e for e in suite.entries(gpu) if e.family == "copy")
    seen = features([replace(entry, source=entry.source.replace("tl.load(x", "tl.lode(x"))], gpu)
    assert not seen.loads and "lode" in seen.missed[entry.name]


def test_every_kernel_is_right_and_can_be_timed_in_the_interpreter(tmp_path: Path) -> None:
    """The whole of `measure`, but for the device: tensors lie in main memory, and events tell the host's time."""
    script = dedent("""
        import contextlib, json, sys, time
        import torch
        from kernel_scientist.gpu.interpreter import numerics
        from kernel_scientist.calibrate import device, measure, suite
        from kernel_scientist.calibrate.families import FAMILIES
        from kernel_scientist.calibrate.suite import Entry
        from kernel_scientist.hardware import gpu as at_hand
        from kernel_scientist.hardware import gpus
        from tests.test_calibrate import HERE

        numerics.install()

        class Event:
            def __init__(self, enable_timing): pass
            def record(self): self.at = time.perf_counter()
            def query(self): return False
            def elapsed_time(self, other): return 1000 * (other.at - self.at)

        torch.cuda.Event = Event
        torch.cuda.synchronize = torch.cuda.empty_cache = lambda: None
        device.present, at_hand.lock = lambda: HERE, lambda platform: "no gpu"
        measure.WHERE, measure.SWEEP_BYTES, measure.WARMUP_S = "cpu", 1 << 10, 0.1
        measure.ROUNDS, measure.CALLS, measure.LEAST = 1, 1, 1
        small = {"copy": (3000,), "reduction": (3, 700), "softmax": (3, 700), "rmsnorm": (5, 200)}
        entries = []
        for machine in ("mi300x", "h100"):
            gpu = gpus.named(machine)
            for family in FAMILIES:
                sizes = small.get(family.file, (48, 80, 1024))
                for setting in (family.settings[1], family.settings[2]):
                    name = f"{machine} {family.name} {suite.label(setting)}"
                    inputs = family.inputs(sizes, gpu)
                    entries.append(Entry(family.name, machine, name, suite.source(family, setting), inputs,
                                         family.work(sizes, gpu)))
        wrong = entries[0].source.replace("tl.load(x + offsets", "0 * tl.load(x + offsets")
        entries.append(Entry("copy", "mi300x", "wrong", wrong, entries[0].inputs, entries[0].work))
        entries.append(Entry("copy", "mi300x", "broken", "raise ValueError('no')", entries[0].inputs, entries[0].work))
        sitting = measure.measure(entries)
        print(json.dumps([sorted(sitting.measured), sitting.dropped]))
    """)
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    measured, dropped = json.loads(done.stdout)
    assert len(measured) == 24, dropped
    assert dropped["wrong"].startswith("wrong: an element is off") and dropped["broken"] == "ValueError: no"


def code(num_warps: int, **mix: float) -> CodeObject:
    loop = {name.replace("_x", " "): int(count) for name, count in mix.items()}
    return CodeObject(
        kernel="k", arch="gfx942", digest="", num_warps=num_warps, vgpr=64, lds_bytes=8192, mix=({"valu": 20}, loop)
    )


def points(noise: float, seed: int = 0, families: int = 6) -> list[fit.Point]:
    """Kernels that lean on one resource each, at three sizes, eight of each, timed by the model itself."""
    rng, gpu, found = random.Random(seed), gpus.named("mi300x"), list[fit.Point]()
    for family, number in ((f, n) for f in range(families) for n in range(24)):
        programs, trips = 1 << (6 + 4 * (number % 3)), rng.choice([8, 64])
        amounts = {"valu": 20.0, "lds_read_x128": 4.0, "vmem_load_x128": 2.0, "v_mfma_f32_32x32x8_bf16": 1.0}
        heavy = ("valu", "lds_read_x128", "vmem_load_x128", "")[family % 4]
        amounts |= {heavy: amounts[heavy] * rng.choice([20, 50])} if heavy else {}
        moved = programs * trips * (4096.0 if family != 3 else 65536.0) * rng.uniform(0.5, 2)
        flops = programs * trips * 2.0**21 * (24 if family == 5 else 1) * rng.uniform(0.5, 2)
        l2 = moved * rng.uniform(1, 2)
        traffic = Traffic(programs, 0.0, l2 * (12 if family == 4 else 1), l2, moved, {"bf16": flops}, (float(trips),))
        load = Load(code(rng.choice([4, 8]), **amounts), traffic, rng.choice([1, 2, 3]))
        loads = (load, load) if number % 5 == 0 else (load,)
        time_us = predict.time_us(gpu, loads, TRUTH) * math.exp(rng.gauss(0, noise))
        found.append(fit.Point(f"f{family} {number}", f"f{family}", f"c{number % 3}", loads, time_us))
    return found


def test_the_fit_finds_the_constants_that_made_the_times() -> None:
    found = fit.fit(gpus.named("mi300x"), points(0.02))
    assert found.rho and found.rho > 0.98 and found.error and found.error < 0.05
    assert found.met and len(found.families) == 6 and found.fitted_on == found.held_out == 72
    assert {"hbm", "matrix", "vector", "lds", "latency_ns", "launch_us"} <= set(found.constants) - set(found.kept)
    for name in set(found.constants) - set(found.kept):
        tolerance = 0.5 if name in ("norm", "next_us", "cache") else 0.2
        assert found.constants[name] == pytest.approx(getattr(TRUTH, name), rel=tolerance), name
    for name in found.kept:
        assert found.constants[name] == getattr(Constants(), name)


def test_constants_that_no_time_depends_on_keep_their_defaults() -> None:
    single = [replace(p, loads=p.loads[:1], time_us=p.time_us) for p in points(0.0) if len(p.loads) == 1]
    _, kept = fit.solve(gpus.named("h100"), [replace(p, loads=(_on_hopper(p.loads[0]),)) for p in single[:30]])
    assert kept["next_us"] == kept["cache"] == "no time depends on it"


def _on_hopper(load: Load) -> Load:
    return replace(load, code=load.code.model_copy(update={"arch": "sm_90"}))


def test_the_fit_survives_data_that_say_little() -> None:
    gpu = gpus.named("mi300x")
    one = fit.fit(gpu, points(0.01, families=1))
    assert len(one.families) == 1 and one.rho is not None
    equal = fit.fit(gpu, [replace(p, time_us=10.0) for p in points(0.0, families=2)])
    assert equal.rho is None and not equal.met and all(f.regret == 0 for f in equal.families)
    same = fit.fit(gpu, [replace(p, loads=points(0.0)[0].loads) for p in points(0.0, families=1)])
    assert same.rho is None and all(math.isfinite(value) for value in same.constants.values())
    for few in ([], points(0.0)[:1], points(0.0)[:2]):
        found = fit.fit(gpu, few)
        assert not found.met and found.fitted_on + found.held_out == len(few)
    assert fit.Fit.model_validate_json(one.model_dump_json()) == one


def test_halves_see_every_case_and_depend_on_the_seed_alone() -> None:
    every = points(0.0)
    ours, others = fit.halves(every, 3)
    assert {p.name for p in ours} | {p.name for p in others} == {p.name for p in every}
    assert (
        {(p.family, p.case) for p in ours}
        == {(p.family, p.case) for p in others}
        == {(p.family, p.case) for p in every}
    )
    assert fit.halves(every[::-1], 3) == (ours, others) != fit.halves(every, 4)


def test_regret_and_ranks() -> None:
    measured = {"a": 10.0, "b": 11.0, "c": 20.0}
    assert figures.regret("abc", measured, {"a": 2.0, "b": 1.0, "c": 3.0}) == pytest.approx(0.1)
    assert figures.regret("abc", measured, {"a": 1.0, "b": 1.0, "c": 1.0}) == pytest.approx(1.0)  # it cannot tell
    assert figures.rank_correlation([1, 2, 3], [10, 20, 15]) == 0.5
    assert figures.rank_correlation([1, 2], [1, 2]) is figures.rank_correlation([1, 1, 1], [1, 2, 3]) is None


def test_a_medians_interval_needs_no_distribution() -> None:
    low, high = measure.interval([float(n) for n in range(1, 37)])
    assert (low, high) == (12.0, 25.0)  # of 36: the 12th and the 25th, by the binomial distribution
    assert measure.interval([5.0]) == (5.0, 5.0)


def calibration(machine: str = "mi300x") -> history.Calibration:
    found = fit.fit(gpus.named(machine), points(0.02, families=2))
    measured = measure.Measured(name="a", time_us=1.0, interval_us=(0.9, 1.1), calls=36, left_out=0)
    state = {"driver": "6.12", "clock_sm": "2100 MHz"}
    return history.Calibration(
        machine=machine,
        device=HERE.model_copy(update={"state": state}),
        date="2026-11-21",
        seconds=200.0,
        fit=found,
        measured=(measured,),
        dropped={"b": "wrong"},
    )


@pytest.fixture
def root(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    return lab


def test_a_calibration_is_kept_and_used(root: Path) -> None:
    assert history.last("mi300x") is None and constants.of("MI300X") == Constants()
    history.keep(calibration())
    assert history.last("mi300x") == calibration()
    used = constants.of("MI300X")
    assert used.calibrated == "AMD Instinct MI300X, 2026-11-21" and used.hbm == calibration().fit.constants["hbm"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"constants": {"hbm": 1, "of": 2}}', '{"constants": {"hbm": 0.5}}'])
def test_a_file_that_is_no_calibration_is_one_sentence(root: Path, text: str) -> None:
    constants.path("h100").parent.mkdir(parents=True)
    constants.path("h100").write_text(text)
    with pytest.raises(
        SetupError, match=r"h100.json is no calibration: .*; remove it or run `kernel-scientist calibrate`"
    ):
        history.last("h100")


def cli(lab: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = lab_environment(lab, CUDA_VISIBLE_DEVICES="", HIP_VISIBLE_DEVICES="")
    command = [sys.executable, "-c", PROGRAM, "calibrate", *arguments]
    return subprocess.run(command, cwd=lab, env=env, capture_output=True, text=True, timeout=120)


def test_without_a_gpu_the_command_tells_of_the_last_calibrations(root: Path) -> None:
    history.keep(calibration())
    said = cli(root)
    assert said.returncode == 0 and said.stdout.startswith("torch finds no GPU here")
    lines = {line.split()[1]: line for line in said.stdout.splitlines() if line.startswith("│ ") and line[2] != " "}
    assert set(lines) == set(gpus.GPUS)
    assert "2026-11-21" in lines["mi300x"] and "AMD Instinct MI300X" in lines["mi300x"]
    assert all("uncalibrated" in line for name, line in lines.items() if name != "mi300x")
    told = json.loads(cli(root, "--json", "--machine", "MI300X").stdout)
    (row,) = told["machines"]
    assert row["device"] == "AMD Instinct MI300X, driver 6.12"
    assert told["gpu"] is None and row["machine"] == "mi300x" and row["rho"] == calibration().fit.rho
    assert "uncalibrated" in cli(root, "--machine", "h200").stdout


def test_the_commands_mistakes_are_one_sentence(root: Path) -> None:
    constants.path("h100").parent.mkdir(parents=True)
    constants.path("h100").write_text("{")
    for arguments, words in ((("--machine", "tpu"), "unknown machine 'tpu'"), ((), "h100.json is no calibration")):
        said = cli(root, *arguments)
        assert said.returncode == 2 and words in said.stderr and "Traceback" not in said.stderr


def test_a_gpu_is_known_by_its_drivers_name_or_by_ours() -> None:
    assert device.known(HERE).name == "MI300X"
    other = HERE.model_copy(update={"name": "NVIDIA GeForce RTX 4090"})
    with pytest.raises(
        SetupError, match=r"'NVIDIA GeForce RTX 4090', is not in the table of machines \(mi300x, .*--machine"
    ):
        device.known(other)
    assert device.known(HERE.model_copy(update={"name": ""}), "mi325x").name == "MI325X"
    with pytest.raises(SetupError, match="is MI300X, not H100"):
        device.known(HERE, "h100")


def test_nothing_is_measured_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "present", lambda: None)
    with pytest.raises(SetupError, match="torch finds no GPU here"):
        measure.measure([])


def test_too_few_times_are_no_calibration(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpus.named("mi300x")
    monkeypatch.setattr(run.features, "features", lambda entries, _: run.features.Features({}, {entries[0].name: "no"}))
    monkeypatch.setattr(run.measure, "measure", lambda entries: measure.Sitting(HERE, {}, {}))
    with pytest.raises(SetupError, match=r"only 0 of \d+ kernels could be timed, the first of the others: no"):
        run.calibrate(HERE, gpu, lambda words: None)
    assert not constants.path("mi300x").exists()


def test_a_calibration_from_end_to_end_with_the_models_own_times(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, every = gpus.named("mi300x"), points(0.01)
    entries = [suite.Entry(p.family, p.case, p.name, "", {}, suite.entries(gpu)[0].work) for p in every]
    measured = {
        p.name: measure.Measured(name=p.name, time_us=p.time_us, interval_us=(1.0, 2.0), calls=36, left_out=0)
        for p in every
    }
    monkeypatch.setattr(run.suite, "entries", lambda _: tuple(entries))
    loads = {p.name: list(p.loads) for p in every}
    monkeypatch.setattr(run.features, "features", lambda *_: run.features.Features(loads, {}))
    monkeypatch.setattr(run.measure, "measure", lambda _: measure.Sitting(HERE, measured, {}))
    said: list[str] = []
    found = run.calibrate(HERE, gpu, said.append)
    assert found.fit.met and history.last("mi300x") == found and len(said) == 3


@pytest.mark.gpu
def test_the_whole_suite_on_the_gpu_at_hand(root: Path) -> None:
    found = device.present()
    assert found is not None
    try:
        gpu = device.known(found)
    except SetupError as error:
        pytest.skip(str(error))
    calibrated = run.calibrate(found, gpu, print)
    assert len(calibrated.measured) >= 60 and not [w for w in calibrated.dropped.values() if w.startswith("wrong")]
    print(calibrated.fit.model_dump(include=set(FITTED)))
    assert constants.of(gpu.name).calibrated


def test_the_gpu_check_without_a_gpu_is_one_sentence() -> None:
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "benchmarks.gpu_check"]
    said = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert said.returncode == 2 and said.stdout.count("\n") == 1 and "no GPU" in said.stdout and not said.stderr


def test_a_part_of_the_gpu_check_is_bounded() -> None:
    done = gpu_check.bounded([sys.executable, "-c", "print('begun', flush=True); import time; time.sleep(60)"], 2)
    assert done.status is None and done.seconds < 20 and done.output == "begun\n"
    assert sum(gpu_check.BOUNDS_S.values()) < 600
    assert gpu_check.answer('compiling\n{"a": {"b": 1}}\n') == {"a": {"b": 1}} and gpu_check.answer("none") == {}


PYTEST = """PASSED tests/test_seeds.py::test_one
SKIPPED [3] tests/cheats/test_gpu.py:91: not reached in the time that was given
FAILED tests/test_seeds.py::test_two - AssertionError
================= 1 failed, 1 passed, 700 deselected in 9.10s ==================
"""


def test_the_gpu_check_leaves_one_folder_with_a_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parts, but for what they run: a test fails, nothing bears a cheat's mark, one seed is never reached."""
    asked: list[list[str]] = []

    def bounded(command: list[str], seconds: float, **_: str) -> gpu_check.Done:
        asked.append(command)
        if "pytest" in command:
            return (
                gpu_check.Done(5, 1.0, "no tests ran in 0.1s\n")
                if "tests/cheats" in command
                else (gpu_check.Done(1, 9.5, PYTEST))
            )
        if "calibrate" in command:
            told = {"fit": calibration().fit.model_dump(mode="json"), "measured": [1, 2], "dropped": {}}
            return gpu_check.Done(0, 100.0, f"timing\n{json.dumps(told, indent=1)}\n")
        if "triton_tiled" in command[4]:
            return gpu_check.Done(None, 20.0, "begun")
        return gpu_check.Done(0, 3.0, json.dumps({"verdict": "ok", "geomean_us": 5.0}))

    monkeypatch.setattr(gpu_check, "bounded", bounded)
    monkeypatch.setattr(gpu_check, "RESULTS", tmp_path)
    monkeypatch.setattr(device, "present", lambda: HERE)
    with pytest.raises(SystemExit) as ended:
        gpu_check.main()
    (folder,) = tmp_path.iterdir()
    assert ended.value.code == 1 and folder.name.startswith("gpu-amd-instinct-mi300x-20")
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["failed"] == ["tests", "suite"] and summary["device"]["name"] == HERE.name
    parts = summary["parts"]
    assert parts["tests"]["tests"] == {"failed": 1, "passed": 1} and parts["tests"]["not_reached"] == 3
    assert parts["tests"]["failed"] == ["tests/test_seeds.py::test_two"] and parts["cheats"]["ok"]
    assert parts["calibration"]["figures"]["rho"] and parts["calibration"]["timed"] == 2
    assert [k["verdict"] for k in parts["suite"]["kernels"]] == ["ok", "no answer"] * 3
    assert {tuple(c[-3:-1]) for c in asked if "evaluate" in c} == {("--target", "rocm")}
    assert len(list(folder.iterdir())) == 10
