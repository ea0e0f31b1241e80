"""The memory checker finds every planted defect at its line, and accuses no sound kernel."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
SCRIPT = HERE / "scripts" / "memory.py"
DEFECTS = sorted((ROOT / "tests" / "memory" / "defects").glob("*.py"))
SOUND = sorted((ROOT / "tests" / "memory" / "sound").glob("*.py"))
KINDS = {"out-of-bounds read", "out-of-bounds write", "uninitialised read", "write race", "mask mistake"}
SEEDS = [f"{path.parts[-3]}-{path.stem}" for path in sorted((ROOT / "problems").glob("*/seeds/triton_*.py"))]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), str(tmp_path_factory.mktemp("damaged"))]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def marked(path: Path, mark: str) -> list[int]:
    return [number for number, line in enumerate(path.read_text().splitlines(), 1) if line.endswith(mark)]


@pytest.mark.parametrize("path", DEFECTS, ids=lambda path: path.stem)
def test_a_planted_defect_is_found_at_its_line(path: Path, results: dict[str, Any]) -> None:
    found = results[f"defects/{path.stem}"]
    assert "error" not in found, found
    kind = next(line for line in path.read_text().splitlines() if line.startswith("KIND = "))[8:-1]
    (line,) = marked(path, "# defect")
    lines = {(defect["kind"], defect["line"]) for defect in found["defects"]}
    assert (kind, line) in lines and lines <= {(kind, each) for each in (line, *marked(path, "# also"))}, found
    for defect in found["defects"]:
        assert defect["source"] and defect["tensor"].endswith(("_ptr", "x", "out")) and defect["lanes"] > 0, defect
        assert defect["severity"] == ("warning" if defect["kind"] == "mask mistake" else "error")
        assert 0 < defect["programs"] <= defect["of_programs"] and len(defect["examples"]) > 0, defect


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.stem)
def test_a_sound_kernel_is_not_accused_and_is_right(path: Path, results: dict[str, Any]) -> None:
    found = results[f"sound/{path.stem}"]
    assert "error" not in found and found["defects"] == [] and found["right"], found
    coverage = found["coverage"]
    assert coverage["launches"] > 0 and coverage["programs"] == coverage["programs_run"] > 0


@pytest.mark.parametrize("name", SEEDS)
def test_a_seed_is_not_accused_and_is_right(name: str, results: dict[str, Any]) -> None:
    assert results[f"seeds/{name}"] == {"defects": [], "right": True}


def test_a_damaged_seed_is_accused(results: dict[str, Any]) -> None:
    damaged = {name: found for name, found in results.items() if name.startswith("damaged/")}
    assert len(damaged) == 6
    for name, found in damaged.items():
        assert found.get("defects"), (name, found)


def test_the_corpus_is_as_large_as_promised() -> None:
    kinds = [next(x for x in p.read_text().splitlines() if x.startswith("KIND"))[8:-1] for p in DEFECTS]
    assert set(kinds) == KINDS and all(kinds.count(kind) >= 5 for kind in KINDS)
    assert len(DEFECTS) >= 32 and len(SOUND) >= 34


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.stem)
def test_a_tile_of_a_sound_kernel_is_right(path: Path, results: dict[str, Any]) -> None:
    """Only the programs of one tile run: what they leave out is no defect, nor what depends on it."""
    found = results[f"tiles/{path.stem}"]
    assert "error" not in found and found["defects"] == [] and found["plan"]["unwritten"] == 0, found
    assert found["right"] and found["known"] > 0, found


def test_a_tile_needs_few_programs(results: dict[str, Any]) -> None:
    found = [found["coverage"] for name, found in results.items() if name.startswith("tiles/")]
    assert sum(2 * one["programs_run"] < one["programs"] for one in found) > 0.6 * len(found)


def test_the_interpreter_is_left_as_it_was(results: dict[str, Any]) -> None:
    assert results["hooks"]["restored"]
