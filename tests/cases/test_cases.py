"""Kernels that people reported as faulty, and honest ones beside them, on a model of the MI300X: who is right?

Each folder is a task folder of GPU MODE with the kernel of the report (`submission.py`) and a mended one (`fixed.py`).
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
FOLDER = Path(__file__).parent


def evaluated(cli_here: Cli, name: str) -> dict[str, Any]:
    file = FOLDER / f"{name}.py"
    done = cli_here("evaluate", str(file), "--problem", str(file.parent), "--target", "model:mi300x", "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode == 0) == (found["verdict"] == "ok"), done.stderr
    return found


def line_of(name: str, text: str) -> int:
    lines = (FOLDER / f"{name}.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("name", ["K01/fixed", "K07/fixed", "K12/submission"])
def test_an_honest_kernel_with_integer_inputs_is_right(cli_here: Cli, name: str) -> None:
    found = evaluated(cli_here, name)
    assert found["verdict"] == "ok", found["reason"]


def test_a_load_that_where_does_not_guard_is_out_of_bounds(cli_here: Cli) -> None:
    found, line = evaluated(cli_here, "K01/submission"), line_of("K01/submission", "tl.where(i == 0")
    assert found["verdict"] == "incorrect"
    assert "out-of-bounds read of ends in" in found["reason"] and f"line {line} " in found["reason"], found["reason"]
    assert "program (0, 0, 0) element -1" in found["reason"]


def test_a_store_to_an_input_is_told_with_its_line(cli_here: Cli) -> None:
    found, line = evaluated(cli_here, "K07/submission"), line_of("K07/submission", "gradient, in place")
    assert found["verdict"] == "incorrect"
    words = f"write to a read-only input of logits in loss_kernel, line {line} "
    assert words in found["reason"] and "program (0, 0, 0)" in found["reason"], found["reason"]


def test_programs_that_wait_for_each_other_are_executed_by_the_machine(cli_here: Cli) -> None:
    found = evaluated(cli_here, "W07/submission")
    assert found["verdict"] == "ok", found["reason"]
    assert "for races and uninitialised reads" in found["coverage"]
