"""A problem's own check shows what it computes as the reference."""

from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_scientist import problems
from kernel_scientist.problems.problem import Problem
from tests.problems.test_kinds_of_folders import folder

REFERENCE = """
def generate_input(size: int, seed: int):
    return (torch.randn(size, generator=torch.Generator().manual_seed(seed)), torch.zeros(size))


def ref_kernel(data):
    print("computed", len(data[0]))
    return data[0] * 3


def check_implementation(data, output):
    {check}
"""
ONCE = "good = bool((output == ref_kernel((data[0], torch.zeros(1)))).all()); return good, 'wrong' * (not good)"


def tripled(place: Path, check: str) -> Problem:
    return problems.load(folder(place / "tripled", REFERENCE.replace("{check}", check), {"size": 8}, {"size": 8}))


def inputs(problem: Problem) -> Any:
    return problem.generate(problem.profile("full").benchmarks[0])


@pytest.mark.parametrize(
    ("check", "computed"),
    [
        (ONCE, ["computed 8"]),
        ("return True, ''", ["computed 8"]),
        (f"ref_kernel((data[0][:3], data[1])); {ONCE}", ["computed 3", "computed 8"]),
        ("ref_kernel((data[0].clone(), data[1])); return True, ''", ["computed 8", "computed 8"]),
    ],
    ids=["the check computes it", "it does not", "on other inputs as well", "on a copy, which may be changed"],
)
def test_the_references_output_is_told(
    check: str, computed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem, told = tripled(tmp_path, check), list[torch.Tensor]()
    data = inputs(problem)
    capsys.readouterr()
    assert problem.check(data, data[0] * 3, told.append) == (True, "")
    assert capsys.readouterr().out.splitlines() == computed
    assert len(told) == 1 and torch.equal(told[0], data[0] * 3)


class UnfitError(Exception):
    pass


def refuse(_: Any) -> None:
    raise UnfitError


@pytest.mark.parametrize(
    "check",
    [
        ONCE,
        "assert len(output)\n    return True, ''",
        "return bool(len(output)), 'empty'",
        "data[0][: len(output)].view(8)\n    return True, ''",
        "try: ref_kernel(data)\n    except Exception: pass\n    return True, ''",
    ],
)
def test_what_the_told_one_raises_comes_first(check: str, tmp_path: Path) -> None:
    problem = tripled(tmp_path, check)
    data = inputs(problem)
    for output in (data[0] * 3, data[0][:0]):
        with pytest.raises(UnfitError):
            problem.check(data, output, refuse)


def test_an_output_on_which_the_check_fails_is_wrong(tmp_path: Path) -> None:
    problem, told = tripled(tmp_path, "output.view(8)\n    return True, ''"), list[torch.Tensor]()
    good, message = problem.check(inputs(problem), torch.zeros(7), told.append)
    assert not good and message.startswith("the problem's check fails on it: RuntimeError: shape '[8]' is invalid")
    assert len(told) == 1


def test_a_check_that_fails_on_the_reference_is_the_problems_fault(tmp_path: Path) -> None:
    flaw = "if len(CALLS) > 40: output.view(3)\n    CALLS.append(1)\n    return True, ''"
    problem = tripled(tmp_path, f"global CALLS\n    CALLS = globals().get('CALLS', [])\n    {flaw}")
    data = inputs(problem)
    with pytest.raises(RuntimeError, match="shape"):
        for _ in range(100):
            assert problem.check(data, data[0] * 3)[0]
