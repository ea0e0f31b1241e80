"""Kernels that people reported as faulty, and honest ones beside them, on a model of the MI300X: who is right?

Each folder is a task folder of GPU MODE with the kernel of the report (`submission.py`) and a mended one (`fixed.py`).
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Cli

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
FOLDER = Path(__file__).parent
WIDE = ROOT / "tests/gpu/capture/submissions/files/wide_workgroup.py"


def evaluated(cli_here: Cli, name: str, *options: str) -> dict[str, Any]:
    file = FOLDER / f"{name}.py"
    where = options or ("--target", "model:mi300x")
    done = cli_here("evaluate", str(file), "--problem", str(file.parent), *where, "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode == 0) == (found["verdict"] == "ok"), done.stderr
    return found


def judged(cli_here: Cli, folder: Path, problem: str, source: str) -> dict[str, Any]:
    """What is said of a kernel on a problem of this folder, with the model of the MI300X."""
    (folder / "kernel.py").write_text(source)
    where = ("--problem", str(FOLDER / problem), "--target", "model:mi300x", "--json")
    found: dict[str, Any] = json.loads(cli_here("evaluate", str(folder / "kernel.py"), *where).stdout)
    return found


def compiled(cli_here: Cli, name: str, arch: str, *options: str, code: int = 0) -> dict[str, Any]:
    done = cli_here("compile", str(FOLDER / name), "--arch", arch, *options, "--json")
    assert done.returncode == code, done.stderr or done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def line_of(name: str, text: str) -> int:
    lines = (FOLDER / f"{name}.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("name", ["K01/fixed", "K07/fixed", "K12/submission", "K13/fixed"])
def test_an_honest_kernel_is_right(cli_here: Cli, name: str) -> None:
    found = evaluated(cli_here, name)
    assert found["verdict"] == "ok", found["reason"]


def test_a_load_that_where_does_not_guard_is_out_of_bounds(cli_here: Cli) -> None:
    found, line = evaluated(cli_here, "K01/submission"), line_of("K01/submission", "tl.where(i == 0")
    assert found["verdict"] == "incorrect"
    assert "out-of-bounds read of ends in" in found["reason"] and f"line {line} " in found["reason"], found["reason"]
    assert "workgroup (0, 0, 0) element -1" in found["reason"]


def test_a_store_to_an_input_is_told_with_its_line(cli_here: Cli) -> None:
    found, line = evaluated(cli_here, "K07/submission"), line_of("K07/submission", "gradient, in place")
    assert found["verdict"] == "incorrect"
    words = f"write to a read-only input of logits in loss_kernel, line {line} "
    assert words in found["reason"] and "workgroup (0, 0, 0)" in found["reason"], found["reason"]


STORED = "tl.store(out + i,"
FAULTS = {
    "what where leaves out": ("- before", "- before + tl.where(i >= n, tl.load(ends + i), 0)", "out-of-bounds read of ends"),
    "an input gets its own value": (STORED, "tl.store(ends + i, tl.load(ends + i, mask=m), mask=m)  # !", "read-only input"),
    "a counter in an input": (STORED, "tl.atomic_max(ends + i, 0, mask=m)  # !", "write to a read-only input of ends"),
    "an assumed multiple": (STORED, "tl.assume(n % 256 == 0)  # !", "false assumption of the code"),
    "an assumed program": (STORED, "tl.assume(tl.program_id(0) > 0)  # !", "false assumption of the code"),
}
"""What is put in place of a text of K01/fixed.py, or before it, and what its reason says beside the line."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_named_with_its_line(cli_here: Cli, tmp_path: Path, name: str) -> None:
    place, fault, words = FAULTS[name]
    source = (FOLDER / "K01/fixed.py").read_text()
    changed = source.replace(place, f"{fault}\n    {place}" if fault.endswith("!") else fault)
    found = judged(cli_here, tmp_path, "K01", changed)
    line = next(n for n, text in enumerate(changed.splitlines(), 1) if fault in text)
    assert found["verdict"] == "incorrect", found["reason"]
    assert words in found["reason"] and f"line {line} " in found["reason"], found["reason"]


@pytest.mark.parametrize(
    "scan",
    [
        "tl.cumsum(keep.to(tl.int16), axis=0).to(tl.int32)",
        "tl.cumsum(keep.to(tl.int64), axis=0)",
        "tl.sum(keep.to(tl.int32), 0) + keep.to(tl.int32) - tl.cumsum(keep, axis=0, reverse=True)",
    ],
)
def test_an_honest_scan_of_another_type_is_right(cli_here: Cli, tmp_path: Path, scan: str) -> None:
    source = (FOLDER / "K12/submission.py").read_text().replace("tl.cumsum(keep, axis=0)", scan)
    found = judged(cli_here, tmp_path, "K12", source)
    assert scan in source and found["verdict"] == "ok", found["reason"]


def test_programs_that_wait_for_more_than_can_run_are_told(cli_here: Cli, tmp_path: Path) -> None:
    source = (FOLDER / "W07/submission.py").read_text()
    for place, new, words in (
        ("sem=\"acquire\") < P:", "sem=\"acquire\") < P + 1:", "waits for a value that no running wave will store"),
        ("16 if n <= 16384 else 256", "16 if n <= 16384 else 16384", "runs 2432 at a time, and each of those waits"),
    ):
        assert place in source
        found = judged(cli_here, tmp_path, "W07", source.replace(place, new))
        assert found["verdict"] == "incorrect" and words in found["reason"], found["reason"]


def test_programs_that_wait_for_each_other_are_executed_by_the_machine(cli_here: Cli) -> None:
    found = evaluated(cli_here, "W07/submission")
    assert found["verdict"] == "ok", found["reason"]
    assert "for races and uninitialised reads" in found["coverage"]


def test_a_false_assumption_is_told_with_its_line(cli_here: Cli) -> None:
    found, line = evaluated(cli_here, "K13/submission"), line_of("K13/submission", "tl.assume")
    assert found["verdict"] == "incorrect"
    words = f"false assumption of the code in partial_sums, line {line} (tl.assume(stride_s > 0))"
    assert words in found["reason"], found["reason"]


@pytest.mark.parametrize(
    ("arch", "warps", "told"),
    [
        ("gfx942", "num_warps=32", "32 x 64 = 2048 threads, gfx942 allows 1024: the launch is refused"),
        ("sm_90", "num_warps=32", ""),
        ("gfx942", "num_warps=16", ""),
        ("sm_90", "num_warps=64", "64 x 32 = 2048 threads, sm_90 allows 1024: the launch is refused"),
    ],
)
def test_a_workgroup_of_too_many_threads_is_refused(
    cli_here: Cli, tmp_path: Path, arch: str, warps: str, told: str
) -> None:
    file = tmp_path / "K09.py"
    file.write_text(WIDE.read_text().replace("num_warps=32", warps))
    found = compiled(cli_here, str(file), arch, code=int(bool(told)))
    assert found["reason"].endswith(told) and bool(found["reason"]) == bool(told), found["reason"]


def test_the_configurations_that_a_target_refuses_are_passed_over(cli_here: Cli, tmp_path: Path) -> None:
    tuner = "@triton.autotune([triton.Config({}, num_warps=w) for w in (32, 8)], key=['cols'])\n@triton.jit"
    file = tmp_path / "tuned.py"
    file.write_text(WIDE.read_text().replace("@triton.jit", tuner).replace(", num_warps=32", ""))
    found = compiled(cli_here, str(file), "gfx942")
    (told,) = found["missed"]
    assert "configuration 2 of 2: num_warps 8" in told and "configuration 1 needs 2048 threads, there are 1024" in told


@pytest.mark.parametrize(
    ("arch", "foreign", "done"),
    [("gfx942", "float8_e4m3fn", "x8_f16"), ("gfx950", "float8_e4m3fnuz", "x16_f16")],
)
def test_a_product_that_is_done_in_another_type_is_told(cli_here: Cli, arch: str, foreign: str, done: str) -> None:
    found = compiled(cli_here, "K16.py", arch)
    (told,) = [line for line in found["findings"] if "in another type" in line]
    assert f"a matrix product of {foreign} is done with v_mfma" in told and done in told, told
    by_inputs = ("--entry", "matmul", "--inputs", "a:float8_e4m3fn[256,256],b:float8_e4m3fn[256,256]")
    called = compiled(cli_here, "K16.py", arch, *by_inputs)
    assert bool([line for line in called["findings"] if "in another type" in line]) == (arch == "gfx942")


def test_invented_arguments_agree_with_the_file_s_own_heuristics(cli_here: Cli) -> None:
    found = compiled(cli_here, "W01/pack/ops/norm.py", "gfx942")
    (told,) = found["missed"]
    assert "n 1024" in told and "by the file's heuristics BLOCK 1024, EVEN True" in told, told
    assert "configuration 1 of 4: ROWS 1, waves_per_eu 2, num_warps 4" in told, told
    (launch,) = found["launches"]
    assert launch["constants"]["BLOCK"] == "1024" and launch["constants"]["waves_per_eu"] == "2"
    assert all(line.startswith("norm_kernel (ROWS 1, num_warps 4): ") for line in found["findings"]), found["findings"]


def test_what_rocm_s_headers_refuse_is_refused(cli_here: Cli) -> None:
    found, line = compiled(cli_here, "H01.py", "gfx942", "--problem", "identity", code=1), line_of("H01", "__shfl_down")
    first = found["reason"].splitlines()[0]
    assert first.startswith(f"H01.py, line {line}: static assertion failed") and "64-bit integer" in first, first
    assert [told for told in found["findings"] if "mask of 32 lanes" in told]


def test_atomics_and_stores_are_in_the_memory_line(cli_here: Cli) -> None:
    found = compiled(cli_here, "K11.py", "gfx942")
    assert found["launches"][0]["accesses"]["global_atomic_pk_add_bf16"] > 0


def test_booleans_that_are_texts_on_the_leaderboard_are_told(cli_here: Cli) -> None:
    found = evaluated(cli_here, "E12/fixed", "--set", "compat=official")
    assert found["verdict"] == "crashed" and "booleans of task.yml are texts" in found["reason"], found["reason"]
    assert found["reason"].endswith("reverse)")
    assert evaluated(cli_here, "E12/submission", "--set", "compat=official")["verdict"] == "ok"
    intended = evaluated(cli_here, "E12/submission", "--target", "cpu")
    assert intended["verdict"] == "incorrect" and "texts" not in intended["reason"]
