"""Checking runs of Triton kernels find every planted defect at its line, and accuse no sound kernel."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.gpu.machine import build
from kernel_scientist.records import environment
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent / "scripts" / "checks.py"
WAITING = SCRIPT.with_name("kernels_that_wait.py")
ASSUMPTIONS = SCRIPT.with_name("kernels_that_assume.py")
NOT_COMPILED = {"transposed_pointers", "read_transposed_pointers"}
"""Triton 3.7 has no gfx942 code for pointers that are transposed."""
WRONG_IN_MACHINE_CODE = {
    "pointer_in_the_middle",  # a buffer instruction does not reach in front of its pointer: the device reads 0
    "flag_with_volatile_load",  # Triton 3.7 loads the flag once, through the scalar cache, and then spins for ever
    "layer_norm_backward_locks",  # a wave stores the count before another wave of the program has read it
}
"""Sound as Triton's source says, but not as it is compiled for gfx942."""
KINDS = {"out-of-bounds read", "out-of-bounds write", "uninitialised read", "write race"}
EVERY = sorted((ROOT / "tests" / "memory" / "defects").glob("*.py"))
DEFECTS = [path for path in EVERY if not path.stem.startswith("mask_")]
UNDEFINED_LANES = [path for path in EVERY if path not in DEFECTS]
"""Undefined by Triton's documentation, zero in gfx942's code: only the result can be wrong."""
SOUND = sorted((ROOT / "tests" / "memory" / "sound").glob("*.py"))
SEEDS = [f"{path.parts[-3]}-{path.stem}" for path in sorted((ROOT / "problems").glob("*/seeds/triton_*.py"))]


def printed(script: Path, folder: Path) -> dict[str, Any]:
    """Run a script in a process of its own; return what it prints."""
    machine = build.build(environment.cache_folder() / "machine")
    variables = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "TRITON_CACHE_DIR": str(folder / "cache"),
    }
    command = [sys.executable, str(script), str(machine), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=variables)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return printed(SCRIPT, tmp_path_factory.mktemp("checks"))


def marked(path: Path) -> set[int]:
    lines = path.read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith(("# defect", "# also"))}


@pytest.mark.parametrize("path", DEFECTS, ids=lambda path: path.stem)
def test_a_planted_defect_is_found_at_its_line(path: Path, results: dict[str, Any]) -> None:
    if path.stem in NOT_COMPILED:
        pytest.skip("not executed")
    found = results[f"defects/{path.stem}"]
    assert "error" not in found, found
    kind = next(line for line in path.read_text().splitlines() if line.startswith("KIND = "))[8:-1]
    lines = marked(path)
    assert any(one["kind"] == kind and one["line"] in lines for one in found["defects"]), found
    for defect in found["defects"]:
        assert defect["source"] and defect["kind"] in KINDS, defect
        assert defect["tensor"].endswith("_ptr"), defect
        assert 0 < defect["programs"] <= defect["of_programs"] and defect["lanes"] > 0


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.stem)
def test_a_sound_kernel_is_not_accused_and_is_right(path: Path, results: dict[str, Any]) -> None:
    found = results[f"sound/{path.stem}"]
    if path.stem in NOT_COMPILED:
        assert "error" in found or not found["right"], "it can be checked now"
    elif path.stem in WRONG_IN_MACHINE_CODE:
        assert found["defects"], "it is right now"
    else:
        assert found == {"defects": [], "right": True}


@pytest.mark.parametrize("path", UNDEFINED_LANES, ids=lambda path: path.stem)
def test_lanes_that_a_mask_switches_off_are_zero(path: Path, results: dict[str, Any]) -> None:
    assert results[f"defects/{path.stem}"]["defects"] == []


@pytest.mark.parametrize("name", SEEDS)
def test_a_seed_is_not_accused_and_is_right(name: str, results: dict[str, Any]) -> None:
    assert results[f"seeds/{name}"] == {"defects": [], "right": True}


def test_a_false_assumption_is_found_at_its_line_where_launches_are_checked(tmp_path: Path) -> None:
    lines = ASSUMPTIONS.read_text().splitlines()
    false = [number for number, line in enumerate(lines, 1) if line.endswith("# false")]
    found = printed(ASSUMPTIONS, tmp_path)
    assert found.pop("sound") == {"checked": [[], []], "unchecked": [[]]}
    assert [one["checked"] for one in found.values()] == [[[["false assumption", line]]] * 2 for line in false]
    found.pop("of_a_constant")  # its compiler sees that nothing can follow, and the plain code ends itself as well
    assert all(one["unchecked"] == [[]] for one in found.values()), "timed code is the target's own"


def test_programs_that_wait_for_others_that_cannot_run_are_told(tmp_path: Path) -> None:
    found = printed(WAITING, tmp_path)
    told = "waits for programs that cannot run: its grid has 40, MI300X runs 16 at a time"
    few, many = found.pop("barrier")
    assert few == "" and many.startswith(f"barrier {told}"), (few, many)
    few, many = found.pop("for_later_ones")
    assert few == "" and many.startswith(f"for_later_ones {told}"), "those that do not wait end and make room"
    for name in ("barrier", "for_later_ones"):
        for defects in found.pop(f"defects of {name}"):
            ((kind, line, tensor, note),) = defects
            assert (
                kind == "deadlock" and tensor in ("count", "input 0") and line.startswith("while tl.atomic_add(count")
            ), defects
            assert "MI300X runs 16 at a time" in note, "and who cannot run"
    checked, executed = found.pop("defects of loaded_once")
    loop = "while tl.load(count, volatile=True) < programs:"
    assert [one[:3] for one in checked] == [["deadlock", loop, "count"]] and "read before" in checked[0][3]
    assert [one[:3] for one in executed] == [["endless loop", loop, "the code"]]
    assert found == {"after_earlier_ones": ["", ""], "lock": ["", ""]}
