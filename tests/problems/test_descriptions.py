"""What a problem's description promises of sizes holds in all of its cases."""

import re
from collections.abc import Iterator

import pytest

from kernel_scientist import problems
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.kernel import Case
from tests.conftest import ROOT

NAMES = sorted(path.parent.name for path in (ROOT / "problems").glob("*/task.yml"))
FIRST = re.compile(r"\b((?:\w+(?:, | and ))*\w+) (?:is|are) (?:a )?multiples? of (\d+)")
NEXT = re.compile(r",? (?:and )?(\w+) of (\d+)")


def promised(text: str) -> Iterator[tuple[str, int]]:
    """Yield sizes and numbers of sentences such as `m is a multiple of 16, n of 64 (not of 128), k of 128`."""
    for sentence in re.split(r"[.;](?:\s|$)", re.sub(r"\([^)]*\)", "", " ".join(text.split()))):
        if first := FIRST.search(sentence):
            yield from ((name, int(first[2])) for name in re.split(r", | and ", first[1]))
            yield from ((match[1], int(match[2])) for match in NEXT.finditer(sentence, first.end()))


def cases(problem: Problem) -> Iterator[Case]:
    """Yield every listed case, and the first two of each range of random ones."""
    for profile in problem.profiles.values():
        yield from (*profile.tests, *profile.benchmarks, *profile.held_out)
        if profile.vary:
            for place in (0, 1):
                sizes = {name: first + place * step for name, (first, _, step) in profile.vary.items()}
                yield Case(sizes={**sizes}, seed=0)


def test_sentences_on_multiples_are_read() -> None:
    text = "m and n are multiples of 64 (n need not be one of\n  128), k of 128. hidden is a multiple of 8, inner of 4."
    assert [*promised(text)] == [("m", 64), ("n", 64), ("k", 128), ("hidden", 8), ("inner", 4)]
    assert [*promised("k is a multiple of 64, n of 16; m is any number.")] == [("k", 64), ("n", 16)]


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_multiples_of_what_the_description_says(name: str) -> None:
    problem = problems.find(name)
    for size, number in promised(problem.description):
        for case in cases(problem):
            assert case.whole(size) % number == 0, f"{size} is no multiple of {number} in {case.name}"


def test_most_gemms_promise_something() -> None:
    assert [*promised(problems.find("fp8-blockwise-gemm").description)] == [("m", 16), ("n", 64), ("k", 128)]


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("bf16", 1e-2)])
def test_the_tolerance_of_a_file_is_as_described(precision: str, tolerance: float) -> None:
    file = ROOT / "tests/problems/kernelbench/level1/1_Linear_with_bias.py"
    problem = problems.find(f"{file}@{precision}" if precision != "fp32" else str(file))
    assert "t = 1e-4 for float32 and 1e-2 for float16 and bfloat16" in problem.description.replace("\n", " ")
    case = problem.profile("cpu").tests[0]
    data = problem.generate(case)
    right = problem.reference(data)
    allowed = tolerance + tolerance * right.float().abs()
    for factor, good in ((0.0, True), (0.4, True), (2.0, False)):  # bf16 itself rounds by 0.4 %
        output = (right.float() + factor * allowed).to(right.dtype)
        assert problem.check(data, output)[0] is good, factor
